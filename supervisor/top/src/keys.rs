//! Key bindings.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::model::{Command, Model};
use crate::order;

/// The help: keys and their effects.
pub(crate) const HELP: [(&str, &str); 11] = [
    ("↑ ↓ k j", "choose a plugin; Home and End the first and the last"),
    ("Enter", "show it whole: instances, actions, what happened, what it wrote"),
    ("PgUp PgDn", "go back and forth in what happened"),
    ("/", "only plugins whose name or state holds what you type; Esc ends it"),
    ("s", "sort by the next column; S turns the order round"),
    ("w n c e l", "sort by worst, name, calls, errors, latency"),
    ("u m f o", "sort by CPU, memory, calls in flight, log lines"),
    ("+ -", "ask the supervisor more often, or less"),
    ("p", "pause: the numbers stay as they are"),
    ("? h", "this help"),
    ("q", "quit; so does Ctrl-C. Ctrl-Z goes to the background"),
];

/// The command for a key in the current state. Ctrl-Z is handled elsewhere, because it does not concern the
/// model.
pub(crate) fn command(model: &Model, key: &KeyEvent) -> Option<Command> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    if control {
        return (key.code == KeyCode::Char('c')).then_some(Command::Quit);
    }
    if model.typing {
        return match key.code {
            KeyCode::Char(typed) => Some(Command::Type(typed)),
            KeyCode::Backspace => Some(Command::Erase),
            KeyCode::Enter => Some(Command::Accept),
            KeyCode::Esc => Some(Command::Close),
            KeyCode::Up => Some(Command::Move(-1)),
            KeyCode::Down => Some(Command::Move(1)),
            _ => None,
        };
    }
    Some(match key.code {
        KeyCode::Char('q') => Command::Quit,
        KeyCode::Up | KeyCode::Char('k') => Command::Move(-1),
        KeyCode::Down | KeyCode::Char('j') => Command::Move(1),
        KeyCode::Home | KeyCode::Char('g') => Command::First,
        KeyCode::End | KeyCode::Char('G') => Command::Last,
        KeyCode::Enter | KeyCode::Right => Command::Open,
        KeyCode::Esc | KeyCode::Left => Command::Close,
        KeyCode::PageUp => Command::PageUp,
        KeyCode::PageDown => Command::PageDown,
        KeyCode::Char('?' | 'h') => Command::Help,
        KeyCode::Char('p' | ' ') => Command::Pause,
        KeyCode::Char('/') => Command::Filter,
        KeyCode::Char('s') => Command::NextSort,
        KeyCode::Char('S') => Command::Reverse,
        KeyCode::Char('+' | '=') => Command::Faster,
        KeyCode::Char('-') => Command::Slower,
        KeyCode::Char(typed) => {
            let (by, ..) = order::ALL.iter().find(|(_, key, _)| *key == typed)?;
            Command::Sort(*by)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn while_a_filter_is_typed_letters_are_letters() {
        let mut model = Model::new(Duration::from_secs(1));
        let key = |code| KeyEvent::new(code, KeyModifiers::NONE);
        assert_eq!(command(&model, &key(KeyCode::Char('q'))), Some(Command::Quit));
        model.typing = true;
        assert_eq!(command(&model, &key(KeyCode::Char('q'))), Some(Command::Type('q')));
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(command(&model, &interrupt), Some(Command::Quit), "there is always a way out");
    }

    #[test]
    fn each_order_has_its_key_and_no_key_has_two_meanings() {
        let model = Model::new(Duration::from_secs(1));
        for (by, typed, _) in order::ALL {
            let key = KeyEvent::new(KeyCode::Char(typed), KeyModifiers::NONE);
            assert_eq!(command(&model, &key), Some(Command::Sort(by)), "{typed}");
        }
    }
}
