//! The keywords of a request, for searching.

use std::collections::BTreeSet;

/// How much of a request is used: as much as the store takes; the beginning says what it is about.
const MAX_BYTES: usize = talon_store::limits::MAX_QUERY_BYTES;

/// Stop words: common words of three letters and more. The store does not search for shorter ones, except in
/// scripts where a character is a word.
const STOP_WORDS: &str = "
all and any are but can did for get had has her him his how its let may new not now old one our out put say see she the too use was way
who why you
aus bei bin das dem den der des die dir ein für hat ich ihr ist man mir mit nun nur ob sie und uns vom von war was wem wen wer wie wir
zum zur auf
aux car ces des est les mes mon pas par que qui ses son sur ton une
con del hay las los mis por qué que sin sus una
вас все вот где его как кто или над она они под тут
about above after again already also another answer anything because been before being below between both cannot could does doing done
down each else even every everything explain find first from give going have here help here's into just know last like list look made
make many more most much must need never next nothing once only other over please said same send should show since some something still
such take tell than that that's their them then there these they thing things this those through time today tomorrow under until using
very want were what what's when where which while will with within without would write yesterday your
aber alle allem allen aller alles also andere auch bitte damit dann dass dein deine dem denn diese dieser dieses doch durch eine einem
einen einer eines haben hallo hier ihre ihnen immer jetzt kann kannst kein keine können machen mache mehr mein meine meinen mich muss
nach nicht noch oder ohne schon sein seine sich sind soll sollte über unter viel welche welcher welches wenn werden wieder wird wurde
zeig zeige zwischen
alors ainsi aussi autre autres avec avoir bien cela celle celui cette chaque comme comment dans depuis donc elle elles encore entre
est-ce être faire fais font leur leurs mais même moins notre nous peux peut plus pour pourquoi quand quel quelle quelles quels quelque
sans sont sous sur tous tout toute toutes très vers votre vous s'il plaît
algo algunos aquí cada como cómo cuál cuando cuándo desde donde dónde ella ellos entre eres esta está estas este esto estos favor hace
hacer hasta haz mucho muy nada nuestro otra otro para pero porque puede puedes quién quiero según sido sobre solo también tiene tienen
todo todos una unos usted ustedes vuestro
для если есть еще ещё какая какие какой когда меня можно мне надо него нужно очень после потом почему пожалуйста при сделай так также
тебя только тогда чтобы что это этого этот эту
";

/// The keywords, separated by spaces; empty if there are none.
pub(super) fn extract(request: &str) -> String {
    let start = &request[..request.floor_char_boundary(MAX_BYTES)];
    let nothing: BTreeSet<&str> = STOP_WORDS.split_whitespace().collect();
    let is_telling = |word: &&str| {
        let letters = word.chars().count();
        let is_short = letters < 3 && word.chars().all(|c| c.is_ascii_alphabetic());
        letters > 0 && !is_short && !nothing.contains(word.to_lowercase().as_str())
    };
    let words = start.split(|c: char| !(c.is_alphanumeric() || c == '\'')).filter(is_telling);
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_is_about_stays() {
        for (request, words) in [
            ("What is the weather like in Paris?", "weather Paris"),
            ("Bitte zeige mir, was über die Steuer gesagt wurde.", "Steuer gesagt"),
            ("明日の東京の天気は？", "明日の東京の天気は"),
            ("PR 42", "42"),
            ("tea for Ada", "tea Ada"),
            ("the and for", ""),
            ("", ""),
        ] {
            assert_eq!(extract(request), words, "{request}");
        }
    }

    #[test]
    fn however_long_a_request_is_the_store_takes_its_words() {
        for long in ["word ".repeat(100_000), "é".repeat(100_000), "x".repeat(100_000), ",".repeat(100_000)]
        {
            assert!(extract(&long).len() <= MAX_BYTES);
        }
    }
}
