//! Control syntax of families that the known set does not hold, under every disguise and in every place.

#[path = "common/decode.rs"]
mod decode;
#[path = "common/evade.rs"]
mod evade;
#[path = "common/unseen.rs"]
mod unseen;

use talon_sanitize::{FamilyCounts, Sanitizer};

// Promises: GUARD-48
#[test]
fn no_unseen_control_string_survives() {
    let sanitizer = Sanitizer::default();
    let all = std::env::var_os("TALON_ALL_UNSEEN").is_some();
    let (mut texts, mut exact, mut decoded) = (0, Vec::new(), Vec::new());
    for hostile in unseen::hostile(all) {
        texts += 1;
        let out = sanitizer.text(&hostile.text, &mut FamilyCounts::default());
        let (plainly, hidden) = unseen::surviving(&out, &hostile.needles);
        if !plainly.is_empty() {
            exact.push(format!("{}: {plainly:?} in {out:?}", hostile.name));
        } else if !hidden.is_empty() {
            decoded.push(format!("{}: {hidden:?} in {out:?}", hostile.name));
        }
    }
    println!("{texts} texts, {} survive exactly, {} decoded", exact.len(), decoded.len());
    assert!(exact.is_empty(), "{} survive exactly:\n{}", exact.len(), exact.join("\n"));
    let (explained, unexplained): (Vec<_>, Vec<_>) = decoded
        .into_iter()
        .partition(|left| unseen::SURVIVORS.iter().any(|(name, _)| left.starts_with(name)));
    assert!(unexplained.is_empty(), "{} survive:\n{}", unexplained.len(), unexplained.join("\n"));
    assert!(explained.len() * 200 <= texts, "{} of {texts} survive decoding", explained.len());
}
