//! Classifies a block of 64 bytes for the first stage: a bit for each byte at which syntax may begin.
//!
//! What three bytes decide is looked up in [`super::rules`]; what depends on more (a line's indentation, an
//! escape some bytes back) is arithmetic on the bits.

use fearless_simd::prelude::*;
use fearless_simd::{Level, dispatch, u8x64};

use super::rules::{
    ALPHANUMERIC, AMBIGUOUS, CLASSES, CONTROL, ESCAPE, FOLDED, INDENT, INDICATORS, IS_AMBIGUOUS,
    IS_SEPARATOR, NAME_CLASSES, NAMES, OPENERS, PLACES, SEPARATOR, SPACE, SPEAKER, STANDALONE, TURNS, Table,
};
use crate::sets::{BLOCK, any};

const NOTHING: [u8; BLOCK] = [0; BLOCK];

/// The state that one block passes to the next.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BlockCarry {
    /// The name of a speaker ends in the next block's first byte.
    speaker: u64,
    /// Where escapes may end.
    escapes: u64,
}

/// The candidates in each of the blocks, and in `behind`, which follows the last of them, if `out` has one
/// more. The text ends behind that.
pub(super) fn classify(
    blocks: &[[u8; BLOCK]],
    behind: &[u8; BLOCK],
    carry: &mut BlockCarry,
    out: &mut [u64],
) {
    classify_at(Level::new(), blocks, behind, carry, out)
}

/// The same with the instructions of this level.
fn classify_at(
    level: Level,
    blocks: &[[u8; BLOCK]],
    behind: &[u8; BLOCK],
    carry: &mut BlockCarry,
    out: &mut [u64],
) {
    dispatch!(level, simd => classify_blocks(simd, blocks, behind, carry, out))
}

#[inline(always)]
fn classify_blocks<S: Simd>(
    simd: S,
    blocks: &[[u8; BLOCK]],
    behind: &[u8; BLOCK],
    carry: &mut BlockCarry,
    out: &mut [u64],
) {
    let (mut bytes, mut behind) = match blocks.first() {
        Some(first) => (first, behind),
        None => (behind, &NOTHING),
    };
    let mut carried = *carry;
    let mut looked_at: Option<Block<S>> = None;
    for (index, places) in out.iter_mut().enumerate() {
        let next = match blocks.get(index + 1) {
            Some(next) => next,
            None => core::mem::replace(&mut behind, &NOTHING),
        };
        let raw = u8x64::from_slice(simd, bytes);
        let telling = INDICATORS.look_up(simd, raw);
        if any(simd, telling, u8::MAX) == 0 && next[0] != b':' && next[1] != b':' {
            // Syntax of this block begins with an indicator byte, or ends at a colon up to two bytes further
            // on.
            *places = carried.speaker | leads(simd, raw);
            let semicolons = raw.simd_eq(u8x64::splat(simd, b';')).to_bitmask();
            carried = BlockCarry { speaker: 0, escapes: semicolons };
            looked_at = None;
        } else {
            let block = looked_at.unwrap_or_else(|| Block::new(simd, raw));
            let following = Block::new(simd, u8x64::from_slice(simd, next));
            *places = block.classify(simd, telling, following.folded, &mut carried);
            looked_at = Some(following);
        }
        bytes = next;
    }
    *carry = carried;
}

/// 64 bytes and their classes.
#[derive(Clone, Copy)]
struct Block<S: Simd> {
    raw: u8x64<S>,
    classes: u8x64<S>,
    /// The folded view.
    folded: u8x64<S>,
}

impl<S: Simd> Block<S> {
    #[inline(always)]
    fn new(simd: S, raw: u8x64<S>) -> Self {
        let all = |byte| u8x64::splat(simd, byte);
        let classes = CLASSES.look_up(simd, raw);
        let is = |class| !(classes & all(class)).simd_eq(all(0));
        let folded =
            is(IS_SEPARATOR).select(all(SEPARATOR), is(IS_AMBIGUOUS).select(all(AMBIGUOUS), raw | all(0x20)));
        let mut block = Self { raw, classes, folded };
        if raw.simd_ge(all(0x80)).any_true() {
            // Chinese and Korean: none of them folds to a letter.
            let settled = raw.simd_ge(all(0xe4)) & raw.simd_le(all(0xe9))
                | raw.simd_eq(all(0xeb))
                | raw.simd_eq(all(0xec));
            block.folded = settled.select(all(b'.'), folded);
        }
        block
    }

    /// The candidates. `telling` is the class of each byte in [`INDICATORS`], and `following` the next block,
    /// folded.
    #[inline(always)]
    fn classify(self, simd: S, telling: u8x64<S>, following: u8x64<S>, carry: &mut BlockCarry) -> u64 {
        let Self { raw, folded, .. } = self;
        let all = |byte| u8x64::splat(simd, byte);
        let is = |byte| raw.simd_eq(all(byte)).to_bitmask();
        let any = |bits, wanted| any(simd, bits, wanted);
        let (second, third) = (folded.slide::<1>(following), folded.slide::<2>(following));
        let openers = look_up(simd, &OPENERS, [raw, second, third]);
        let rules = look_up(simd, &FOLDED, [folded, second, third]);

        let mut places = any(openers | rules & all(PLACES) | telling & all(STANDALONE), u8::MAX);

        let angles = is(b'<');
        if angles != 0 {
            let names = look_up(simd, &NAMES, [folded, second, third]);
            places |= self.tags(simd, angles, any(names, u8::MAX));
        }

        let breaks = is(b'\n');
        let indent = any(self.classes, INDENT);
        let controls = any(self.classes, CONTROL) & !(indent | breaks);
        let mut turns = any(rules, TURNS) | UNSEEN;
        if controls != 0 {
            // The carriage return of a two-character line break is no candidate.
            places |= controls & !(is(b'\r') & breaks >> 1);
            // A backspace deletes the second character of a line.
            turns |= controls >> 2;
        }
        places |= lines(breaks, indent, turns);

        let speaker = any(rules, SPEAKER);
        places |= speaker << 1 | carry.speaker;
        carry.speaker = speaker >> (BLOCK - 1);
        let escapes = any(self.classes, ESCAPE) | is(b';');
        let colons = second.simd_eq(all(b':')).to_bitmask();
        if colons != 0 {
            places |= colons & near(escapes, carry.escapes);
        }
        carry.escapes = escapes;

        places | leads(simd, raw)
    }
}

impl<S: Simd> Block<S> {
    /// The angles behind which a relevant tag may stand. `names` are the places where a suspicious name may
    /// begin.
    #[inline(always)]
    fn tags(self, simd: S, angles: u64, names: u64) -> u64 {
        let is = |byte| self.raw.simd_eq(u8x64::splat(simd, byte)).to_bitmask();
        let any = |bits, wanted| any(simd, bits, wanted);
        let slashes = is(b'/');
        let behind = angles << 1;
        let begins = behind & !slashes | (behind & slashes) << 1;
        let kinds = NAME_CLASSES.look_up(simd, self.raw);
        let (letters, words) = (any(kinds, ALPHANUMERIC), any(kinds, u8::MAX));
        // The end of the first word, and of all words: as in `lines`.
        let first = begins.wrapping_add(letters) & !letters;
        let (last_end, open) = begins.overflowing_add(words);
        let ends = last_end & !words;

        // `< name`, `<]<`, `<<`
        let begins_so = begins & (names | any(kinds, SPACE) | is(b']')) | behind & angles;
        let mut found = angles & (begins_so >> 1 | (begins_so & slashes << 1) >> 2);
        // Bytes that may continue the name. A slash does at the end of the text.
        let goes_on = any(self.classes, IS_SEPARATOR | IS_AMBIGUOUS) | is(b':') | is(b'|');
        let slash = slashes & !(is(b'>') >> 1);
        // `<tool<!-- -->_call>`
        let comments = angles & (is(b'!') >> 1 | UNSEEN);
        let mut going_on = ends & (goes_on | slash | comments) | first & is(b'-');
        while going_on != 0 {
            found |= last(angles & !going_on & (going_on - 1));
            going_on &= going_on - 1;
        }
        // The next block decides, and does not see the angle.
        if open || angles >> (BLOCK - 2) != 0 {
            found |= last(angles) | angles & UNSEEN;
        }
        found
    }
}

/// The rules that match at each place.
#[inline(always)]
fn look_up<S: Simd>(simd: S, table: &Table, [first, second, third]: [u8x64<S>; 3]) -> u8x64<S> {
    let [one, two, three] = &table.nibbles;
    one.look_up(simd, first) & two.look_up(simd, second) & three.look_up(simd, third)
}

/// The bytes for which the second byte behind them is in the next block, and may be a backspace.
const UNSEEN: u64 = 0b11 << (BLOCK - 2);

/// The line breaks behind which a turn may stand after indentation. `turns` are the places where one may
/// begin.
#[inline(always)]
fn lines(breaks: u64, indent: u64, turns: u64) -> u64 {
    // Adding to a run of ones carries a one to the place behind its end.
    let (sum, open) = (breaks << 1).overflowing_add(indent);
    // A turn does not begin in a blank line.
    let turns = sum & !(indent | breaks) & turns;
    let mut found = breaks & turns >> 1;
    // The next block decides, and does not see the break.
    if open | (breaks >> (BLOCK - 1) != 0) {
        found |= last(breaks);
    }
    let mut indented = turns & !(breaks << 1);
    while indented != 0 {
        found |= last(breaks & !indented & (indented - 1));
        indented &= indented - 1;
    }
    found
}

/// The last of the ones.
#[inline(always)]
fn last(ones: u64) -> u64 {
    (1u64 << (BLOCK - 1)).checked_shr(ones.leading_zeros()).unwrap_or(0)
}

/// The places at most 15 bytes behind an escape.
#[inline(always)]
fn near(escapes: u64, before: u64) -> u64 {
    let mut near = u128::from(escapes) << 64 | u128::from(before);
    near |= near << 1;
    near |= near << 2;
    near |= near << 4;
    near |= near << 8;
    (near >> 64) as u64
}

/// The bytes that begin a character that is invisible, a control, or passes for an opener: U+0080–U+00BF,
/// U+0280–U+02FF (ʺ ˂ ˋ), U+0340–U+037F (͏), U+0580–U+063F (։ ׃), U+1000–U+3FFF, U+A000–U+AFFF (꞉ ꓽ),
/// U+F000–U+FFFF, and the planes of 0x1xxxx and 0xExxxx.
#[inline(always)]
fn leads<S: Simd>(simd: S, raw: u8x64<S>) -> u64 {
    let all = |byte| u8x64::splat(simd, byte);
    if !raw.simd_ge(all(0x80)).any_true() {
        return 0;
    }
    let within = |from, to| raw.simd_ge(all(from)) & raw.simd_le(all(to));
    let leads = raw.simd_eq(all(0xc2))
        | within(0xca, 0xcd)
        | within(0xd6, 0xd8)
        | within(0xe1, 0xe3)
        | raw.simd_eq(all(0xea))
        | raw.simd_ge(all(0xef));
    leads.to_bitmask()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The levels of this machine.
    fn levels() -> Vec<Level> {
        let best = Level::new();
        let mut levels = vec![best, Level::baseline()];
        #[cfg(target_arch = "x86_64")]
        {
            levels.extend(best.as_avx2().map(Level::Avx2));
            levels.extend(best.as_sse4_2().map(Level::Sse4_2));
        }
        levels
    }

    /// Classifies every block in full, without the early exit.
    fn classify_every_block(level: Level, blocks: &[[u8; BLOCK]]) -> Vec<u64> {
        #[inline(always)]
        fn each<S: Simd>(simd: S, blocks: &[[u8; BLOCK]]) -> Vec<u64> {
            let mut carry = BlockCarry::default();
            let block = |bytes: &[u8; BLOCK]| Block::new(simd, u8x64::from_slice(simd, bytes));
            let places = blocks.iter().enumerate().map(|(index, bytes)| {
                let next = blocks.get(index + 1).unwrap_or(&NOTHING);
                let (block, following) = (block(bytes), block(next));
                block.classify(simd, INDICATORS.look_up(simd, block.raw), following.folded, &mut carry)
            });
            places.collect()
        }
        dispatch!(level, simd => each(simd, blocks))
    }

    proptest! {
        #[test]
        fn a_block_in_which_nothing_tells_has_no_place(
            text in "([a-zA-Z0-9 ,.;\t/=>)-]{0,150}|[:;] ?|[uU]ser:|[tT]ool|[<\\[\"&%\\\\`#~|\n\r\x08\x7f]|ü|字|＜|\u{200b}){0,20}",
        ) {
            let mut bytes = text.into_bytes();
            bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
            let (blocks, _) = bytes.as_chunks();
            for level in levels() {
                let mut places = vec![0; blocks.len()];
                classify_at(level, blocks, &NOTHING, &mut BlockCarry::default(), &mut places);
                prop_assert_eq!(&places, &classify_every_block(level, blocks), "{:?}", level);
            }
        }

        #[test]
        fn every_level_of_instructions_judges_alike(
            text in "([<\\[\"&%\\\\`#~|>:;/ \n\r\t\x08a-zA-Z0-9_-]|[Tt]ool|[Hh]uman|user|ü|字|“|＜|\u{200b}){0,300}",
        ) {
            let (blocks, rest) = text.as_bytes().as_chunks();
            let mut end = [0; BLOCK];
            end[..rest.len()].copy_from_slice(rest);
            let places = levels().into_iter().map(|level| {
                let mut places = vec![0; blocks.len() + 1];
                classify_at(level, blocks, &end, &mut BlockCarry::default(), &mut places);
                places
            });
            let places: Vec<Vec<u64>> = places.collect();
            prop_assert!(places.windows(2).all(|two| two[0] == two[1]), "{places:x?}");
        }
    }
}
