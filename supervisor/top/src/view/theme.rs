//! Colours, or none.

use ratatui::style::{Color, Modifier, Style};

/// The styles. Everything that colour expresses is also expressed by a word.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Theme {
    pub(crate) color: bool,
}

impl Theme {
    fn of(self, color: Color) -> Style {
        if self.color { Style::new().fg(color) } else { Style::new() }
    }

    pub(crate) fn good(self) -> Style {
        self.of(Color::Green)
    }

    pub(crate) fn warning(self) -> Style {
        self.of(Color::Yellow)
    }

    pub(crate) fn bad(self) -> Style {
        self.of(Color::Red).add_modifier(Modifier::BOLD)
    }

    pub(crate) fn dim(self) -> Style {
        if self.color { self.of(Color::DarkGray) } else { Style::new().add_modifier(Modifier::DIM) }
    }

    pub(crate) fn title(self) -> Style {
        self.of(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    pub(crate) fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// The style for the state of a plugin, an instance, the supervisor, the audit log, or the state service.
    pub(crate) fn state(self, state: &str) -> Style {
        match state {
            "ready" | "serving" | "on" => self.good(),
            "failed" | "refused" | "unhealthy" | "failing" | "quarantined" => self.bad(),
            "stopped" | "off" | "" => self.dim(),
            _ => self.warning(),
        }
    }
}
