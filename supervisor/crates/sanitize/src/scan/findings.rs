//! What a scan has found so far. Some findings count only beside others, so they are resolved at the end of
//! the text.

use std::collections::HashMap;

use crate::edit::{Edit, EditKind};
use crate::family_counts::{Family, FindingKind};
use crate::role::{Role, RoleSet};
use crate::shapes::{LineStart, MidLine, ReActStep, Verdict};

/// What a scan has found so far.
#[derive(Default)]
pub(super) struct Findings {
    /// Edits that count whatever else is found.
    edits: Vec<Edit>,
    /// Openers that count only if a closer with their key follows.
    openers: Vec<(u64, Option<Role>, Edit)>,
    /// The closers found so far, with their offsets, in order.
    closers: Vec<(u64, usize)>,
    /// Elements of records that are open.
    fields: Vec<u64>,
    /// Fields of a form that are named like speakers: they count where a person asks and a model answers.
    form_fields: Vec<Edit>,
    form_roles: RoleSet,
    /// Turns that count only beside a turn of another speaker.
    turns: Vec<(Role, Edit)>,
    /// The same in the middle of a line: they count where a person asks and a model answers.
    mid_line_turns: Vec<Edit>,
    mid_line_roles: RoleSet,
    /// Speakers inside other words: they count beside turns that do.
    nested_turns: Vec<Edit>,
    /// Turns that count without another speaker.
    opening_turns: Vec<Edit>,
    /// One of the speakers speaks: where all of them are only described, no turn counts.
    is_spoken: bool,
    line_roles: RoleSet,
    /// Speakers named by tags and brackets.
    named_roles: RoleSet,
    /// Edits that count only beside a heading of a prompt.
    near_heading: Vec<Edit>,
    has_prompt_heading: bool,
    /// Steps of a ReAct loop that count only beside one that is unmistakable.
    steps: Vec<Edit>,
    has_react_step: bool,
    /// Inputs of an action in the middle of a line, which some parsers take: they count beside a step.
    mid_line_inputs: Vec<Edit>,
}

impl Findings {
    /// Adds what a shape said of an opener that is written as `kind`.
    pub(super) fn add(&mut self, verdict: Verdict, kind: FindingKind) {
        match verdict {
            Verdict::Clean => {}
            Verdict::Mark { at, family } => self.edits.push(Edit::mark(at, family, kind)),
            Verdict::Field { key } => self.fields.push(key),
            Verdict::Closer { key, .. } if self.fields.last() == Some(&key) => {
                self.fields.pop();
            }
            Verdict::Closer { at, family, key } => {
                self.closers.push((key, at));
                self.edits.push(Edit::mark(at, family, kind));
            }
            Verdict::Opener { at, family, key, role } => {
                if let Some(role) = role {
                    self.named_roles.add(role);
                }
                self.openers.push((key, role, Edit::mark(at, family, kind)));
            }
            Verdict::Speaker { at, family, role } => {
                self.named_roles.add(role);
                self.edits.push(Edit::mark(at, family, kind));
            }
            Verdict::NearHeading { at, family } => self.near_heading.push(Edit::mark(at, family, kind)),
        }
        match verdict {
            Verdict::Mark { family: Family::Fence, .. } => self.has_react_step = true,
            // Of the verdicts on openers only that on a heading is about turns.
            Verdict::Mark { family: Family::Turn, .. } => self.has_prompt_heading = true,
            _ => {}
        }
    }

    /// Adds what stands at the start of a line. `opens_turn` says whether a turn of that speaker counts there
    /// without another speaker, `is_field` whether it may be a field of a form, `speaks` whether the speaker
    /// whose mark would be at an offset is not only described, and `mark` makes the edit there.
    pub(super) fn add_line_start(
        &mut self,
        start: LineStart,
        opens_turn: impl FnOnce(Role) -> bool,
        is_field: impl FnOnce(Role) -> bool,
        speaks: impl FnOnce(usize) -> bool,
        mark: impl FnOnce(usize) -> Edit,
    ) {
        match start {
            LineStart::Nothing => {}
            LineStart::Marker(end) => self.edits.push(mark(end)),
            LineStart::BrokenTurn(role) => {
                self.is_spoken = true;
                self.line_roles.add(role);
            }
            LineStart::BrokenStep => self.has_react_step = true,
            LineStart::Heading(end) => {
                self.is_spoken = true;
                self.mid_line_turns.push(mark(end));
            }
            LineStart::Turn(role, end) if is_field(role) => {
                self.is_spoken |= speaks(end);
                self.form_roles.add(role);
                self.form_fields.push(mark(end));
            }
            LineStart::Turn(role, end) => {
                self.is_spoken |= speaks(end);
                self.line_roles.add(role);
                if role != Role::Bot && opens_turn(role) {
                    self.opening_turns.push(mark(end));
                } else {
                    self.turns.push((role, mark(end)));
                }
            }
            LineStart::React(ReActStep::Input, end) => {
                self.has_react_step = true;
                self.edits.push(mark(end));
            }
            LineStart::React(ReActStep::Action | ReActStep::Other, end) => self.steps.push(mark(end)),
        }
    }

    /// Adds what stands in front of a colon in the middle of a line.
    /// `speaks` says whether a speaker is not only described or named.
    pub(super) fn add_mid_line(&mut self, found: MidLine, speaks: bool, edit: Edit) {
        match found {
            MidLine::Turn(role) => {
                self.is_spoken |= speaks;
                self.mid_line_roles.add(role);
                self.mid_line_turns.push(edit);
            }
            MidLine::Nested => self.nested_turns.push(edit),
            MidLine::Introduction => self.mid_line_turns.push(edit),
            MidLine::Input => self.mid_line_inputs.push(edit),
        }
    }

    /// Adds a run of invisible or control characters.
    pub(super) fn add_note(&mut self, at: usize, first: char, end: usize, count: usize, family: Family) {
        self.edits.push(Edit { at, kind: EditKind::Note { first, count, end, family } });
    }

    /// Adds the turns that count.
    fn add_turns(&mut self) {
        let take = std::mem::take::<Vec<Edit>>;
        let asked = self.line_roles.union(self.form_roles).has_question_and_answer(self.mid_line_roles);
        let is_dialogue = asked || self.line_roles.has_dialogue();
        if asked {
            self.edits.extend(take(&mut self.form_fields));
            self.edits.extend(take(&mut self.mid_line_turns));
        }
        if is_dialogue || !self.opening_turns.is_empty() {
            self.edits.extend(take(&mut self.nested_turns));
        }
        self.edits.extend(take(&mut self.opening_turns));
        if is_dialogue {
            let turns = std::mem::take(&mut self.turns).into_iter();
            let turns = turns.filter(|&(role, _)| role != Role::Bot || asked);
            self.edits.extend(turns.map(|(_, edit)| edit));
        }
    }

    /// Resolves the findings that count only beside others, and returns all edits in the order of their
    /// offsets.
    pub(super) fn finish(mut self) -> Vec<Edit> {
        if self.is_spoken {
            self.add_turns();
        }
        if self.has_prompt_heading {
            self.edits.extend(self.near_heading);
        }
        let has_input = !self.mid_line_inputs.is_empty() && !self.steps.is_empty();
        if self.has_react_step || has_input {
            self.edits.extend(self.steps);
            self.edits.extend(self.mid_line_inputs);
        }
        let conversation = self.named_roles.has_question_and_answer(self.named_roles);
        if !self.openers.is_empty() && (conversation || !self.closers.is_empty()) {
            let last: HashMap<u64, usize> = self.closers.into_iter().collect();
            let counting = self.openers.into_iter().filter(|(key, role, edit)| {
                conversation && role.is_some() || last.get(key).is_some_and(|&at| at > edit.at)
            });
            self.edits.extend(counting.map(|(_, _, edit)| edit));
        }
        // A mark stands in front of a note at the same place.
        let order = |edit: &Edit| (edit.at, matches!(edit.kind, EditKind::Note { .. }));
        if !self.edits.is_sorted_by_key(order) {
            self.edits.sort_by_key(order);
        }
        self.edits.dedup_by(|later, earlier| {
            later.at == earlier.at
                && matches!((later.kind, earlier.kind), (EditKind::Mark(..), EditKind::Mark(..)))
        });
        self.edits
    }
}
