//! Points in time as others write them, and what a path is.

use talon_proto::state::Layers;

use super::super::layout::FileKind;
use super::super::scalar::time;

#[test]
fn times_are_read_with_any_offset_and_fraction() {
    for (text, expected) in [
        ("2026-02-21T15:00:00Z", "2026-02-21T15:00:00.000Z"),
        ("2026-02-21t15:00:00z", "2026-02-21T15:00:00.000Z"),
        ("2026-02-21T15:00:00.5+01:00", "2026-02-21T14:00:00.500Z"),
        ("2026-02-21T15:00:00.123456789-05:30", "2026-02-21T20:30:00.123Z"),
        ("2026-02-21T15:00:00.1234567891234+0100", "2026-02-21T14:00:00.123Z"),
        ("2026-02-21 15:00:00 +2", "2026-02-21T13:00:00.000Z"),
        ("2026-02-21 15:00:00", "2026-02-21T15:00:00.000Z"),
        ("2026-02-21", "2026-02-21T00:00:00.000Z"),
    ] {
        assert_eq!(time(text).map(|at| at.map(|at| at.to_string())), Ok(Some(expected.to_owned())), "{text}");
    }
    for nothing in ["", "0001-01-01T00:00:00Z"] {
        assert_eq!(time(nothing), Ok(None), "{nothing}");
    }
    for wrong in [
        "5",
        "yesterday",
        "2026-02-30T00:00:00Z",
        "2026-02-21T24:61:00Z",
        "2026-02-21T15:00:00+25:00",
        "2026-02-21Tnoon",
        "2026-02-21T15:00:00 CET",
        "1969-12-31T00:00:00Z",
        "21-02-2026T15:00:00Z",
        "2026-02-21T15:00:00+é",
        "٢٠٢٦-02-21",
        "2026-02-21T15:00:00.Z.5",
        "2026-02-21+01:00",
    ] {
        assert!(time(wrong).is_err(), "{wrong}: {:?}", time(wrong));
    }
}

#[test]
fn a_path_says_whose_file_it_is() {
    let layers_of = |path| FileKind::parse(path).ok().map(|place| place.layers());
    assert_eq!(layers_of("plugins/hello/state.yaml"), Some(Layers::KeyValues));
    assert_eq!(layers_of("sessions/slack:C1.yaml"), Some(Layers::Conversations));
    assert_eq!(layers_of("memory/memories.yaml"), Some(Layers::Conversations));
    assert_eq!(layers_of("memory/other.yaml"), None);
    assert_eq!(layers_of("plugins/../state.yaml"), None);
}
