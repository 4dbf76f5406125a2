//! How models choose their words, as clients say it.

use talon_agent_settings::{Sampling, SamplingNumber};
use talon_proto::agent;
use tonic::Status;

/// Checks what a client says; what is absent stays open.
pub(super) fn known_sampling(said: Option<agent::Sampling>) -> Result<Sampling, Status> {
    let agent::Sampling { temperature, top_p, max_tokens } = said.unwrap_or_default();
    let number = |name: &str, number: f64| {
        SamplingNumber::new(number)
            .ok_or_else(|| Status::invalid_argument(format!("{name} is a number from 0 to 2, such as 0.7")))
    };
    let top_p = top_p.map(|top_p| number("top_p", top_p)).transpose()?;
    if !top_p.is_none_or(SamplingNumber::is_part) {
        return Err(Status::invalid_argument("top_p is above 0 and at most 1, such as 0.95"));
    }
    if max_tokens == Some(0) {
        return Err(Status::invalid_argument(
            "an answer of 0 tokens is none: leave max_tokens out, or write how long answers should be at most",
        ));
    }
    let temperature = temperature.map(|temperature| number("temperature", temperature)).transpose()?;
    Ok(Sampling { temperature, top_p, max_tokens })
}

/// What clients are shown; `None` if nothing is said.
pub(super) fn sampling_view(sampling: Sampling) -> Option<agent::Sampling> {
    let Sampling { temperature, top_p, max_tokens } = sampling;
    (sampling != Sampling::default()).then(|| agent::Sampling {
        temperature: temperature.map(SamplingNumber::get),
        top_p: top_p.map(SamplingNumber::get),
        max_tokens,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_model_takes_is_refused_with_its_name() {
        let of = |temperature, top_p, max_tokens| {
            known_sampling(Some(agent::Sampling { temperature, top_p, max_tokens }))
        };
        for (wrong, name) in [
            (of(Some(2.5), None, None), "temperature"),
            (of(Some(f64::NAN), None, None), "temperature"),
            (of(None, Some(0.0), None), "top_p"),
            (of(None, Some(1.5), None), "top_p"),
            (of(None, None, Some(0)), "max_tokens"),
        ] {
            assert!(wrong.expect_err(name).message().contains(name));
        }
        let right = of(Some(0.2), Some(0.9), Some(100)).expect("numbers");
        assert_eq!(sampling_view(right).and_then(|view| view.temperature), Some(0.2));
        assert_eq!(sampling_view(known_sampling(None).expect("nothing")), None);
    }
}
