//! The transactions of a stream or of its last window as bytes, so that a later run goes on.
//!
//! ```text
//! body    1  windows: 0 none, 1 of transactions, 2 of time
//!         8  transactions of a pane, or nanoseconds of a window
//!         8  panes of a window
//!         8  transactions so far, or the number of the live pane of time
//!         …  items by number
//!         8  number of blocks, and for each, the oldest first
//!              4  age of its pane: 0 for the live one
//!              4  transactions, 1 to 65,535
//!              8  number of items, and for each its number (4), the number of its
//!                 transactions (4) and these (2 each), ascending
//! ```
//!
//! The module [`state`](crate::shared::state) describes the envelope around the body.

use super::collector::BLOCK_TRANSACTIONS;
use super::panes::PaneBlocks;
use super::transposed::TransposedBlock;
use crate::shared::names::ItemNames;
use crate::shared::state::{Reader, RestoreError, StateKind, Writer};
use crate::shared::window::borders::Borders;
use crate::shared::window::slides::Slides;

/// Maximum number of transactions or panes of time; no stream reaches this number.
const PROGRESS_MAX: u64 = 1 << 62;

/// Kind of the windows, length of a pane or of a window, and panes of a window, as a state has
/// them.
fn windows(slides: Option<Slides>) -> (u8, [u64; 2]) {
    match slides.map(|slides| (slides.borders, slides.panes as u64)) {
        None => (0, [0, 1]),
        Some((borders @ Borders::Items { pane, .. }, panes)) => (borders.kind(), [pane, panes]),
        Some((borders @ Borders::Time { grid, .. }, panes)) => {
            (borders.kind(), [grid.nanoseconds(), panes])
        }
    }
}

/// The state: the items, and the transactions of `panes`, whose blocks have all returned.
pub(crate) fn snapshot(names: &ItemNames, slides: Option<Slides>, panes: &PaneBlocks) -> Vec<u8> {
    let mut writer = Writer::new(StateKind::FrequentPairs, names.stored_type());
    let (kind, numbers) = windows(slides);
    writer.u8(kind);
    numbers.into_iter().for_each(|number| writer.u64(number));
    let (progress, blocks) = panes.state();
    writer.u64(progress);
    names.write(&mut writer);
    writer.len(blocks.len());
    for (age, block) in blocks {
        writer.u32(age);
        writer.u32(block.transactions());
        writer.len(block.len());
        for (item, tids) in block.lists() {
            writer.u32(item);
            writer.u32(u32::try_from(tids.len()).expect("fewer than 2^16"));
            writer.u16s(tids);
        }
    }
    writer.finish()
}

/// Reads a state into `names` and `panes`, which are empty.
///
/// # Errors
/// If the bytes are not such a state, or the state has another type of items or other windows.
pub(crate) fn restore(
    bytes: &[u8],
    names: &mut ItemNames,
    slides: Option<Slides>,
    panes: &mut PaneBlocks,
) -> Result<(), RestoreError> {
    let mut reader = Reader::new(bytes, StateKind::FrequentPairs, names.stored_type())?;
    let (kind, numbers) = windows(slides);
    let found = reader.u8("the kind of windows")?;
    reader.check("the kind of windows (0 none, 1 transactions, 2 time)", found, &(kind..=kind))?;
    for (expected, field) in
        numbers.into_iter().zip(["the length of windows", "the panes of windows"])
    {
        let found = reader.u64(field)?;
        reader.check(field, found, &(expected..=expected))?;
    }
    let progress = reader.u64("the position of the stream")?;
    reader.check("the position of the stream", progress, &(0..=PROGRESS_MAX))?;
    names.read(&mut reader)?;
    let count = reader.len("the number of blocks", usize::MAX, 16)?;
    let mut blocks: Vec<(u32, TransposedBlock)> = Vec::with_capacity(count);
    let mut seen = vec![0; names.len()];
    let mut counts = vec![0_u64; slides.map_or(1, |slides| slides.panes)];
    let panes_max = u32::try_from(counts.len() - 1).expect("at most 1,000 panes");
    for number in 1..=count {
        let oldest = blocks.last().map_or(panes_max, |(age, _)| *age);
        let age = reader.u32("the age of a block")?;
        let age = reader.check("the age of a block", age, &(0..=oldest))?;
        let block = read_block(&mut reader, &mut seen, number)?;
        counts[age as usize] += u64::from(block.transactions());
        blocks.push((age, block));
    }
    if let Some(Slides { borders: Borders::Items { pane, .. }, .. }) = slides {
        check_counts(&reader, &counts, progress, pane)?;
    }
    reader.finish()?;
    panes.resume(progress, blocks);
    Ok(())
}

/// Reads the block `number`. `seen` has, for each item, the number of the last block with that
/// item.
fn read_block(
    reader: &mut Reader<'_>,
    seen: &mut [usize],
    number: usize,
) -> Result<TransposedBlock, RestoreError> {
    let field = "the transactions of a block";
    let transactions = reader.u32(field)?;
    let most = u32::try_from(BLOCK_TRANSACTIONS).expect("2^16");
    let mut block =
        TransposedBlock::with_transactions(reader.check(field, transactions, &(1..=most))?);
    let items = reader.len("the items of a block", seen.len(), 8)?;
    for _ in 0..items {
        let item = reader.slot("an item of a block", seen.len())?;
        if std::mem::replace(&mut seen[item as usize], number) == number {
            return Err(reader.refuse("an item of a block", "there twice", "once"));
        }
        let field = "the transactions of an item";
        let len = reader.u32(field)?;
        let len = reader.check(field, len, &(1..=transactions))?;
        let tids = reader.u16s(field, len as usize)?;
        let last = tids.last().map_or(0, |&tid| u32::from(tid));
        if last >= transactions || !tids.is_sorted_by(|left, right| left < right) {
            let expected = format!("ascending and below {transactions}");
            return Err(reader.refuse(field, format!("not so, up to {last}"), expected));
        }
        block.push(item, &tids);
    }
    // Earlier versions wrote items in the order of their first occurrence.
    block.sort();
    Ok(block)
}

/// Refuses panes whose numbers of transactions contradict the position of the stream.
fn check_counts(
    reader: &Reader<'_>,
    counts: &[u64],
    position: u64,
    pane: u64,
) -> Result<(), RestoreError> {
    for (age, &count) in (0..).zip(counts) {
        let expected = match age {
            0 => position % pane,
            _ if position / pane >= age => pane,
            _ => 0,
        };
        if count != expected {
            return Err(reader.refuse("the transactions of a pane", count, expected));
        }
    }
    Ok(())
}
