//! The words that change a plan.

use talon_proto::agent::PlanStep;

/// The words with what they take, for help texts.
pub(in crate::client::agent) const WORDS: &str =
    "add TEXT, insert N TEXT, reword N TEXT, move N TO, drop N…, done N…, open N…, clear";

/// What is said where a word or a number is missing.
const HOW: &str = "change the plan with: add TEXT, insert N TEXT, reword N TEXT, move N TO, drop N…, done N…, open N…, or clear";

/// A change of a plan. Numbers are those of the steps, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::client::agent) enum PlanEdit {
    Add(String),
    Insert(usize, String),
    Reword(usize, String),
    Move(usize, usize),
    Drop(Vec<usize>),
    Mark(Vec<usize>, &'static str),
    Clear,
}

impl PlanEdit {
    /// Parses a line such as `move 3 1`.
    ///
    /// # Errors
    /// How it is written, for people.
    pub(in crate::client::agent) fn parse(line: &str) -> Result<Self, String> {
        let how = || HOW.to_owned();
        let (word, rest) = split(line);
        match word {
            "add" if !rest.is_empty() => Ok(Self::Add(rest.to_owned())),
            "insert" | "reword" => {
                let (number, text) = split(rest);
                let number = number.parse().map_err(|_| how())?;
                match (word, text) {
                    (_, "") => Err(how()),
                    ("insert", text) => Ok(Self::Insert(number, text.to_owned())),
                    (_, text) => Ok(Self::Reword(number, text.to_owned())),
                }
            }
            "move" => match numbers(rest).as_deref() {
                Some([from, to]) => Ok(Self::Move(*from, *to)),
                _ => Err(how()),
            },
            "drop" => numbers(rest).map(Self::Drop).ok_or_else(how),
            "done" => numbers(rest).map(|steps| Self::Mark(steps, "done")).ok_or_else(how),
            "open" => numbers(rest).map(|steps| Self::Mark(steps, "open")).ok_or_else(how),
            "clear" if rest.is_empty() => Ok(Self::Clear),
            _ => Err(how()),
        }
    }

    /// The steps after the change.
    ///
    /// # Errors
    /// Which step is not there, for people.
    pub(in crate::client::agent) fn apply(&self, steps: &[PlanStep]) -> Result<Vec<PlanStep>, String> {
        let mut steps = steps.to_vec();
        let count = steps.len();
        let place = |number: usize| match number.checked_sub(1).filter(|place| *place < count) {
            Some(place) => Ok(place),
            None if count == 0 => Err("there is no plan yet: add TEXT begins one".to_owned()),
            None => Err(format!("there is no step {number}: the plan has {count}")),
        };
        let step = |text: &str| PlanStep { text: text.to_owned(), state: "open".to_owned() };
        match self {
            Self::Add(text) => steps.push(step(text)),
            // Behind the last one is a place, too.
            Self::Insert(number, text) if *number == count + 1 => steps.push(step(text)),
            Self::Insert(number, text) => steps.insert(place(*number)?, step(text)),
            Self::Reword(number, text) => steps[place(*number)?].text.clone_from(text),
            Self::Move(from, to) => {
                let (from, to) = (place(*from)?, place(*to)?);
                let moved = steps.remove(from);
                steps.insert(to, moved);
            }
            Self::Drop(numbers) => {
                let places = numbers.iter().map(|number| place(*number)).collect::<Result<Vec<_>, _>>()?;
                let mut at = 0..;
                steps.retain(|_| at.next().is_none_or(|at| !places.contains(&at)));
            }
            Self::Mark(numbers, state) => {
                for number in numbers {
                    (*state).clone_into(&mut steps[place(*number)?].state);
                }
            }
            Self::Clear => steps.clear(),
        }
        Ok(steps)
    }
}

/// The first word, and the rest.
fn split(line: &str) -> (&str, &str) {
    let (word, rest) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
    (word, rest.trim())
}

/// One number or more, apart by spaces or commas.
fn numbers(text: &str) -> Option<Vec<usize>> {
    let words = text.split([' ', ',']).filter(|word| !word.is_empty());
    let numbers: Option<Vec<usize>> = words.map(|word| word.parse().ok()).collect();
    numbers.filter(|numbers| !numbers.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn steps(texts: &str) -> Vec<PlanStep> {
        let step = |text: &str| PlanStep { text: text.to_owned(), state: "open".to_owned() };
        texts.split_whitespace().map(step).collect()
    }

    fn edited(texts: &str, line: &str) -> Result<String, String> {
        let steps = PlanEdit::parse(line)?.apply(&steps(texts))?;
        let shown = |step: &PlanStep| match step.state.as_str() {
            "open" => step.text.clone(),
            state => format!("{}:{state}", step.text),
        };
        Ok(steps.iter().map(shown).collect::<Vec<_>>().join(" "))
    }

    // Promises: CLI-81
    #[test]
    fn a_plan_is_changed_by_words() {
        for (line, after) in [
            ("add d", "a b c d"),
            ("insert 1 z", "z a b c"),
            ("insert 4 z", "a b c z"),
            ("reword 2 x", "a x c"),
            ("move 3 1", "c a b"),
            ("move 1 3", "b c a"),
            ("drop 2", "a c"),
            ("drop 1, 3", "b"),
            ("done 1 2", "a:done b:done c"),
            ("open 1", "a b c"),
            ("clear", ""),
        ] {
            assert_eq!(edited("a b c", line).as_deref(), Ok(after), "{line}");
        }
        for (line, why) in [
            ("drop 4", "there is no step 4: the plan has 3"),
            ("move 0 1", "there is no step 0"),
            ("drop", HOW),
            ("reword 1", HOW),
            ("move 1", HOW),
            ("clear all", HOW),
            ("do it", HOW),
        ] {
            let refused = edited("a b c", line).expect_err(line);
            assert!(refused.contains(why), "{line}: {refused}");
        }
        assert!(edited("", "drop 1").expect_err("none").contains("add TEXT"));
        assert!(HOW.contains(&WORDS[..WORDS.len() - ", clear".len()]));
    }

    proptest! {
        // Promises: CLI-81
        #[test]
        fn moving_keeps_all_steps_and_nothing_panics(from in 0_usize..9, to in 0_usize..9, count in 0_usize..8, line in ".{0,24}") {
            let texts: Vec<String> = (0..count).map(|number| number.to_string()).collect();
            let before = steps(&texts.join(" "));
            if let Ok(after) = PlanEdit::Move(from, to).apply(&before) {
                let mut sorted = after.clone();
                sorted.sort_by(|a, b| a.text.cmp(&b.text));
                prop_assert_eq!(sorted, before.clone());
                prop_assert_eq!(&after[to - 1], &before[from - 1]);
            }
            if let Ok(edit) = PlanEdit::parse(&line) {
                let _ = edit.apply(&before);
            }
        }
    }
}
