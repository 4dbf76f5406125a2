//! Words that indicate reasoning, in the languages of the safety rules: en, de, fr, es, zh, ja, ru, ar.
//!
//! They are stems: `analy` covers analyse, analyze, analysis. A stem counts at the start of a word, and in
//! scripts without spaces anywhere. The words do not occur in ordinary questions; "how" and "what" would make
//! everything complex.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

/// One string per concept, so that two spellings or languages of it count once; its stems are separated by
/// `|`.
const CONCEPTS: &[&str] = &[
    // To analyse.
    "analy|analiz|análi|analís|分析|解析|анализ|проанализ|حلل|تحليل|حلّل",
    // To compare, to weigh.
    "compar|trade-off|tradeoff|pros and cons|weigh up|vergleich|abwäg|vor- und nachteile\
     |avantages et|ventajas y|比较|优缺点|比較|メリット|сравни|сравнен|плюсы и минусы|قارن|مقارنة",
    // To prove, to derive.
    "prove |proof|derive |beweis|herleit|démontr|prouve|demuestr|demostr|证明|推导|証明|докаж|доказ|أثبت\
     |برهن",
    // To reason, to think through.
    "reason about|reason through|step by step|step-by-step|think through|think hard\
     |schritt für schritt|durchdenk|überleg|étape par étape|réfléchi|raisonn|paso a paso|razona|一步一步\
     |逐步|推理|ステップバイステップ|よく考え|шаг за шагом|пошагов|рассужд|خطوة بخطوة",
    // To design, to plan.
    "design|architect|plan |planning|strateg|roadmap|entwirf|entwurf|architektur|plane |planung\
     |conçoi|concevoir|conception|planifi|stratég|diseñ|arquitect|estrateg|设计|架构|规划|策略|設計|計画|戦略\
     |спроектир|архитектур|стратеги|صمم|تصميم|خطط|استراتيج",
    // To find the cause of a fault.
    "debug|root cause|diagnos|troubleshoot|fehlersuche|ursache|débog|débug|cause racine|depur\
     |causa raíz|调试|根本原因|デバッグ|原因を|отлад|причин|شخص |السبب الجذري",
    // To rebuild, to make better.
    "refactor|rewrite|optimi|migrat|refaktor|umbau|umschreib|optimier|refactoris|réécri|reescrib\
     |optimiz|migrer|重构|优化|迁移|リファクタ|最適化|移行|рефактор|оптимиз|перепиш|أعد كتابة|حسّن|تحسين",
    // To judge.
    "evaluat|critique|review|assess|bewert|beurteil|begutacht|évalu|critiqu|evalú|evalua|revisa|评估\
     |审查|評価|レビュー|оцени|оценк|рецензи|قيّم|تقييم|راجع",
    // Why, and what follows.
    "explain why|implication|warum|weshalb|pourquoi|por qué|为什么|为何|なぜ|почему|зачем|لماذا",
    // To calculate, to solve.
    "solve |calculate|algorithm|complexity of|berechne|löse |algorithmus|résou|algorithme|calcule\
     |resuelv|algoritm|求解|算法|計算|アルゴリズム|вычисл|решите|алгоритм|احسب|خوارزمي",
];

struct Stems {
    automaton: AhoCorasick,
    /// The concept of each pattern.
    concepts: Vec<usize>,
}

static STEMS: LazyLock<Stems> = LazyLock::new(|| {
    let (concepts, stems): (Vec<usize>, Vec<&str>) = CONCEPTS
        .iter()
        .enumerate()
        .flat_map(|(concept, stems)| stems.split('|').map(move |stem| (concept, stem)))
        .unzip();
    let automaton = AhoCorasick::builder()
        .match_kind(MatchKind::Standard)
        .build(stems)
        .expect("a few hundred short patterns fit into an automaton");
    Stems { automaton, concepts }
});

/// The number of different concepts in a text.
pub(super) fn count_concepts(text: &str) -> usize {
    let folded = text.to_lowercase();
    let mut found: BTreeSet<usize> = BTreeSet::new();
    for hit in STEMS.automaton.find_overlapping_iter(&folded) {
        let begins = folded.get(hit.start()..).and_then(|rest| rest.chars().next());
        let before = folded.get(..hit.start()).and_then(|before| before.chars().next_back());
        let is_start =
            before.is_none_or(|before| !before.is_alphanumeric()) || begins.is_some_and(is_unspaced);
        if is_start {
            found.extend(STEMS.concepts.get(hit.pattern().as_usize()));
        }
    }
    found.len()
}

/// Whether the script puts no spaces between words: Chinese and Japanese. Arabic counts as well, since its
/// article and its "and" are prefixes, so that the start of a word is not the start of the stem.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{600}'..='\u{6ff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_asks_for_thought() {
        for text in [
            "Please ANALYZE this",
            "Bitte vergleiche die beiden",
            "Explique étape par étape",
            "Diseña un sistema",
            "请分析一下这段代码",
            "このコードをリファクタリングして",
            "Докажите теорему",
            "والتحليل من فضلك",
        ] {
            assert_eq!(count_concepts(text), 1, "{text}");
        }
    }

    #[test]
    fn a_concept_counts_once_and_only_where_a_word_begins() {
        assert_eq!(count_concepts("analyse the analysis, analysiere, 分析"), 1);
        assert_eq!(count_concepts("compare and evaluate"), 2);
        for text in ["what time is it?", "the airplane lands", "hello", "psychoanalysis", "", "explain it"] {
            assert_eq!(count_concepts(text), 0, "{text}");
        }
    }

    #[test]
    fn stems_are_written_as_they_are_compared() {
        for stem in CONCEPTS.iter().flat_map(|stems| stems.split('|')) {
            assert_eq!(stem, stem.to_lowercase());
            assert!(stem.trim().chars().count() >= 2, "{stem:?}");
        }
    }
}
