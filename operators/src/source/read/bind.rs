//! Checks of the parameters of `read`, and the sources that `read` makes of the parameters.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_schema::{Fields, SchemaRef};
use trommel_engine::error::{BindError, BindErrorKind};
use trommel_engine::memory::MemoryBudget;
use trommel_engine::operator::{
    BindContext, Fragment, Load, OperatorError, OperatorSpec, Output, Source as _, SourceFlow,
};
use trommel_engine::registry::Configured;

use super::columns::first;
use super::columns::schema::{self, TableSchema};
use super::csv::labelled::LabelledRows;
use super::csv::records::CsvLines;
use super::divided::{self, Divided, Division, EachLine, RecordEnds};
use super::error::{ReadError, TableError};
use super::files::input::Inputs;
use super::files::paths::{self, Files, Place};
use super::fixed::integers::{Integers, Word};
use super::fixed::names::Names;
use super::fixed::npy::NpyHeader;
use super::fixed::source::{RowFormat, RowSource};
use super::fixed::vectors::{NpyVectors, RawVectors, npy_header};
use super::following::follow::{self, FollowSource, Named, TIMES, Times};
use super::following::growing::Growing;
use super::json::infer::FirstRows;
use super::json::jsonl::JsonRows;
use super::pieces::Reading;
use super::tables::arrow::ArrowTable;
use super::tables::parquet::ParquetTable;
use super::tables::source::{Columns, OpenTable, Opening, Tables, columns_of, open_table};
use super::text::encoding::{self, Decoding, Invalid};
use super::text::lines::{LineBuffer, LineFormat};
use super::text::plain::{LINE_NUMBER, PLACE_COLUMNS, TextLines};
use super::text::records::{Beginning, Joined, Records};
use super::text::sets::SetLines;
use super::text::source::LineSource;
use super::text::texts::{Texts, Unit};
use super::{Read, ReadFormat, ReadFrom};
use crate::shared::columns::DIMS_MAX;
use crate::shared::files::{input_claims, name_of};
use crate::shared::parameters::{Mistakes, refuse, selected_isa};
use crate::shared::rejected::OnError;

/// Minimum threads at which workers pay for texts of lines. The words of a file of 500 MB are
/// counted on two cores in 1.06 s without workers and in 1.02 s with workers, on four cores in
/// 0.76 s and 0.64 s.
const LINES_THREADS_MIN: usize = 4;
/// Maximum tables of Parquet or Arrow that are tried for the columns if bad files are left out.
const FIRST_FILES: usize = 8;

impl Read {
    /// Makes buffers of lines.
    fn buffers(
        &self,
        memory: &MemoryBudget,
    ) -> Result<impl Fn() -> LineBuffer + Send + use<>, BindError> {
        let (isa, memory) = (selected_isa()?, memory.clone());
        let (line_bytes_max, guesses) = (self.line_bytes_max, self.encoding.is_none());
        Ok(move || {
            let lines = LineBuffer::of_file(isa, line_bytes_max).within(&memory);
            if guesses { lines } else { lines.without_guesses() }
        })
    }

    fn lines(&self, memory: &MemoryBudget) -> Result<LineBuffer, BindError> {
        Ok(self.buffers(memory)?())
    }

    /// How copies of the source read whole files.
    fn reading_files(&self) -> Result<Reading, BindError> {
        Ok(Reading::whole(self.action(), self.decoding()?, self.batch))
    }

    /// How copies of the source read lines.
    pub(super) fn reading_lines(&self) -> Result<Reading, BindError> {
        Ok(self.reading_files()?.lines(self.line_bytes_max, self.encoding.is_none()))
    }

    fn action(&self) -> OnError {
        let usual = if self.follow { OnError::Skip } else { OnError::Fail };
        self.on_error.unwrap_or(usual)
    }

    /// Whether bad lines can go to an output of their own.
    fn can_reject(&self) -> bool {
        matches!(
            self.format,
            ReadFormat::Lines
                | ReadFormat::Sets
                | ReadFormat::Csv
                | ReadFormat::Jsonl
                | ReadFormat::Log
        )
    }

    /// The encoding of text, and the action for other bytes.
    fn decoding(&self) -> Result<Decoding, BindError> {
        let invalid = self.invalid.unwrap_or(Invalid::of(self.action()));
        let Some(name) = &self.encoding else { return Ok(Decoding::usual(invalid)) };
        let encoding = encoding::named(name).ok_or_else(|| {
            let allowed = "expected a label of the Encoding Standard, such as `utf-8`, \
                           `windows-1252`, `utf-16le`, `iso-8859-2` or `shift_jis`";
            refuse("encoding", format!("`{name}`"), allowed)
        })?;
        Ok(Decoding { encoding, invalid })
    }

    /// Rows of lines, with the columns that the parameters name.
    fn text_lines(&self) -> Result<TextLines, BindError> {
        let mut mistakes = Mistakes::default();
        for name in &self.columns {
            mistakes.refuse(!PLACE_COLUMNS.contains(&name.as_str()), || {
                let allowed = "lines have `path` and `line_number` beside `line`";
                refuse("columns", format!("`{name}`"), allowed)
            });
        }
        mistakes.all(|| Some(TextLines::with_columns(&self.columns)))
    }

    pub(super) fn bind_lines(
        &self,
        inputs: Inputs,
        memory: &MemoryBudget,
        format: impl LineFormat + 'static,
    ) -> Result<Fragment, BindError> {
        let schema = SchemaRef::clone(format.schema());
        let source = LineSource::new(inputs, format, self.batch, self.lines(memory)?);
        Ok(Fragment::source(Load::Heavy, source, schema))
    }

    /// Binds a source of lines. Copies of the source read large files as `reading` says. Several
    /// workers parse the lines of a pipe or of a file that cannot be cut, if there are at least
    /// `threads_min` threads.
    pub(super) fn bind_divided<F: Divided + 'static>(
        &self,
        (files, inputs): (Files, impl FnOnce(Files) -> Inputs),
        context: &BindContext,
        (format, reading): (F, Reading),
        (ends, threads_min): (impl RecordEnds + 'static, usize),
    ) -> Result<Fragment, BindError> {
        if let Some(most) = reading.copies(&files) {
            let buffers = self.buffers(&context.memory)?;
            return reading.source_of_lines((files, most), context, format, buffers);
        }
        let workers = divided::workers(&files, context.threads);
        let Some(workers) = workers.filter(|_| context.threads >= threads_min) else {
            return self.bind_lines(inputs(files), &context.memory, format);
        };
        let division = Division {
            batch: self.batch,
            on_error: self.action(),
            decoding: self.decoding()?,
            memory: context.memory.clone(),
            block_bytes: divided::BLOCK_BYTES,
        };
        let lines = self.lines(&context.memory)?;
        Ok(division.source(inputs(files), lines, &format, ends, workers))
    }

    /// Binds a source of records. Each line that fits a pattern begins a record, and the lines up
    /// to the next such line belong to the record.
    fn bind_joined(
        &self,
        files: (Files, impl FnOnce(Files) -> Inputs),
        context: &BindContext,
        records: impl Records + Divided + 'static,
        beginning: Beginning,
    ) -> Result<Fragment, BindError> {
        let joined = Joined::new(records, beginning, self.line_bytes_max);
        self.bind_shared(files, context, (joined.within(&context.memory), self.reading_files()?))
    }

    /// Binds a source of lines. Copies of the source share the files as `reading` says, and one
    /// reader reads what the copies cannot share.
    pub(super) fn bind_shared<F: Divided + 'static>(
        &self,
        (files, inputs): (Files, impl FnOnce(Files) -> Inputs),
        context: &BindContext,
        (format, reading): (F, Reading),
    ) -> Result<Fragment, BindError> {
        match reading.copies(&files) {
            Some(most) => {
                let buffers = self.buffers(&context.memory)?;
                reading.source_of_lines((files, most), context, format, buffers)
            }
            None => self.bind_lines(inputs(files), &context.memory, format),
        }
    }

    /// Binds a source of texts of lines.
    fn bind_texts(
        &self,
        files: (Files, impl FnOnce(Files) -> Inputs),
        context: &BindContext,
    ) -> Result<Fragment, BindError> {
        let lines = self.text_lines()?;
        if let Some(beginning) = self.beginning()? {
            return self.bind_joined(files, context, lines, beginning);
        }
        let reading = self.reading_lines()?;
        let is_numbered = self.columns.iter().any(|name| name == LINE_NUMBER);
        let reading = if is_numbered { reading.numbered() } else { reading };
        self.bind_divided(files, context, (lines, reading), (EachLine, LINES_THREADS_MIN))
    }

    /// Binds a source of logs.
    fn bind_logs(
        &self,
        files: (Files, impl FnOnce(Files) -> Inputs),
        context: &BindContext,
    ) -> Result<Fragment, BindError> {
        let rows = self.log_rows(&files.0, context)?;
        match self.beginning()? {
            Some(beginning) => self.bind_joined(files, context, rows, beginning),
            None => self.bind_divided(files, context, (rows, self.reading_lines()?), (EachLine, 1)),
        }
    }

    /// The paths of followed files; refuses formats and paths that cannot be followed.
    fn named(&self) -> Result<Vec<Named>, BindError> {
        if self.reads_stdin() {
            let allowed = "only files can be followed";
            return Err(refuse("follow", "true with standard input", allowed));
        }
        let followed = [
            ReadFormat::Lines,
            ReadFormat::Sets,
            ReadFormat::Csv,
            ReadFormat::Jsonl,
            ReadFormat::Log,
        ];
        if !followed.contains(&self.format) {
            let allowed = "`format` must be `lines`, `sets`, `csv`, `jsonl` or `log`";
            return Err(refuse("follow", "true", allowed));
        }
        let named = follow::named(&self.paths, !self.on_error.is_some_and(OnError::goes_on));
        found(named)
    }

    /// Binds a source that follows files.
    fn bind_following(
        &self,
        named: Vec<Named>,
        context: BindContext,
    ) -> Result<Fragment, BindError> {
        match self.format {
            ReadFormat::Lines => self.following_records(named, context, self.text_lines()?),
            ReadFormat::Sets => {
                let sets = SetLines::new().within(&context.memory);
                self.following(named, context, sets)
            }
            ReadFormat::Jsonl => {
                let rows = self.json_rows(&self.files_there(), &context)?;
                self.following(named, context, rows)
            }
            ReadFormat::Log => {
                let rows = self.log_rows(&self.files_there(), &context)?;
                self.following_records(named, context, rows)
            }
            ReadFormat::Csv => {
                let (dialect, bytes_max) = (self.dialect()?, self.line_bytes_max);
                if self.is_csv_table() {
                    let rows = self.typed_rows(&self.files_there(), &context.demand)?;
                    let rows = CsvLines::new(rows, dialect, bytes_max).within(&context.memory);
                    self.following(named, context, rows)
                } else {
                    let rows = LabelledRows::new(self.csv_columns()?);
                    let rows = CsvLines::new(rows, dialect, bytes_max).within(&context.memory);
                    self.following(named, context, rows)
                }
            }
            _ => unreachable!("refused before"),
        }
    }

    /// The followed files that exist now, which give the columns of a table.
    fn files_there(&self) -> Files {
        let found = paths::resolve(&self.paths, OnError::Skip).ok().flatten().unwrap_or_default();
        let is_there = |place: &Place| matches!(place, Place::File(path) if path.is_file());
        let places = found.places.into_iter().filter(is_there).collect();
        Files { places, bytes: Some(0), claims: Vec::new() }
    }

    fn following_records(
        &self,
        named: Vec<Named>,
        context: BindContext,
        records: impl Records + Growing + 'static,
    ) -> Result<Fragment, BindError> {
        match self.beginning()? {
            Some(beginning) => {
                let joined = Joined::new(records, beginning, self.line_bytes_max);
                let joined = joined.within(&context.memory);
                self.following(named, context, joined)
            }
            None => self.following(named, context, records),
        }
    }

    fn following(
        &self,
        named: Vec<Named>,
        context: BindContext,
        format: impl Growing + 'static,
    ) -> Result<Fragment, BindError> {
        let schema = SchemaRef::clone(format.schema());
        let inputs =
            Inputs::none(self.action()).decoding(self.decoding()?).leaving_out(context.outputs);
        let claims: Vec<_> = named.iter().flat_map(Named::claims).collect();
        let lines = self.lines(&context.memory)?.skipping_zeros();
        let quiet = self.quiet_seconds.map_or(TIMES.quiet, Duration::from_secs_f64);
        let source = FollowSource::new(inputs, named, format, self.batch, lines)
            .times(Times { quiet, ..TIMES });
        let is_at_end = self.from == ReadFrom::End;
        let source = if is_at_end { source.beginning_at_end() } else { source };
        let fragment = Fragment::source(Load::Heavy, source, schema).claiming(claims);
        Ok(if is_at_end { fragment } else { fragment.rereading() })
    }

    /// Binds a source of rows of a fixed width, which `new` converts.
    fn bind_rows<F: RowFormat + 'static>(
        &self,
        (files, inputs): (Files, impl FnOnce(Files) -> Inputs),
        context: &BindContext,
        (reading, new): (Reading, impl Fn() -> F + Send + 'static),
    ) -> Result<Fragment, BindError> {
        match reading.copies(&files) {
            Some(most) => reading.source_of_rows((files, most), context, new),
            None => Ok(self.bind_named_rows(inputs(files), new())),
        }
    }

    /// Binds a source of rows of a fixed width that one reader reads.
    fn bind_named_rows(&self, inputs: Inputs, format: impl RowFormat + 'static) -> Fragment {
        let schema = SchemaRef::clone(format.schema());
        let source = RowSource::new(inputs, format, self.batch);
        Fragment::source(Load::Heavy, source, schema)
    }

    /// Binds a source of vectors of `dims` coordinates. The names of vectors have one reader.
    fn bind_vectors(
        &self,
        (files, inputs): (Files, impl FnOnce(Files) -> Inputs),
        context: &BindContext,
        dims: u32,
    ) -> Result<Fragment, BindError> {
        let (names, reading) = (self.open_names()?, self.reading_files()?.with_row_ids());
        let width = dims as usize * size_of::<f32>();
        let is_raw = self.format == ReadFormat::F32le;
        match (names, is_raw) {
            (None, true) => {
                let new = move || RawVectors::new(dims, None);
                self.bind_rows((files, inputs), context, (reading.rows(width), new))
            }
            (None, false) => {
                let new = move || NpyVectors::new(dims, None);
                self.bind_rows((files, inputs), context, (reading.arrays(dims), new))
            }
            (names, true) => Ok(self.bind_named_rows(inputs(files), RawVectors::new(dims, names))),
            (names, false) => Ok(self.bind_named_rows(inputs(files), NpyVectors::new(dims, names))),
        }
    }

    /// Binds a source of integers.
    fn bind_integers<T: Word>(
        &self,
        files: (Files, impl FnOnce(Files) -> Inputs),
        context: &BindContext,
    ) -> Result<Fragment, BindError> {
        let reading = self.reading_files()?.rows(size_of::<T::Native>());
        self.bind_rows(files, context, (reading, Integers::<T>::new))
    }

    /// Binds a source of tables. The first table gives the columns.
    fn bind_tables(
        &self,
        files: Files,
        open_as: OpenTable,
        context: &BindContext,
    ) -> Result<Fragment, BindError> {
        let blame = |error: ReadError| BindErrorKind::Other(Box::new(error)).at("paths");
        let opening = Opening { batch: self.batch, memory: context.memory.clone() };
        let mut first = Err(blame(ReadError::Table {
            path: files.places[0].name(),
            source: TableError::NotRegular,
        }));
        for place in files.places.iter().take(FIRST_FILES) {
            first = open_table(place, open_as, &opening)
                .map(|(_, table)| (columns_of(&*table), table.blocks().max(1)))
                .map_err(blame);
            if first.is_ok() || !self.action().goes_on() {
                break;
            }
        }
        let (all, blocks) = first?;
        let named = schema::choose(all.fields(), &self.columns)?;
        let schema = schema::demanded(&named, &context.demand);
        let columns = Columns {
            read: schema,
            named,
            are_chosen: !self.columns.is_empty(),
            conditions: context.demand.conditions().to_vec(),
        };
        let tables = Tables { open_as, opening, columns, goes_on: self.action().goes_on() };
        let reading = self.reading_files()?.tables(tables.clone());
        let most = reading.copies_of_blocks(&files, blocks.saturating_mul(files.places.len()));
        reading.source_of_tables((files, most), context, tables)
    }

    /// Refuses parameters of followed files if no file is followed.
    fn check_not_followed(&self) -> Result<(), BindError> {
        let given =
            [("from", self.from == ReadFrom::End), ("quiet_seconds", self.quiet_seconds.is_some())];
        let allowed = "it is for followed files only, with `follow`: true";
        let mut mistakes = Mistakes::default();
        for (parameter, is_given) in given {
            mistakes.refuse(is_given && !self.follow, || refuse(parameter, "a value", allowed));
        }
        mistakes.none()
    }

    /// Refuses parameters that belong to other formats.
    fn check_format(&self) -> Result<(), BindError> {
        let of_vectors = [ReadFormat::F32le, ReadFormat::Npy, ReadFormat::Csv];
        let of_csv = [ReadFormat::Csv];
        let of_rows = [ReadFormat::F32le, ReadFormat::Npy];
        let of_names = [
            ReadFormat::Csv,
            ReadFormat::Lines,
            ReadFormat::Jsonl,
            ReadFormat::Log,
            ReadFormat::Parquet,
            ReadFormat::Arrow,
        ];
        let of_tables = [ReadFormat::Jsonl, ReadFormat::Csv, ReadFormat::Log];
        let of_logs = [ReadFormat::Log];
        let of_records = [ReadFormat::Lines, ReadFormat::Log];
        let of_text = [
            ReadFormat::Lines,
            ReadFormat::Paragraphs,
            ReadFormat::Files,
            ReadFormat::Sets,
            ReadFormat::Csv,
            ReadFormat::Jsonl,
            ReadFormat::Log,
        ];
        let given: [(_, _, &[ReadFormat], _); 14] = [
            ("encoding", self.encoding.is_some(), &of_text, "of text"),
            ("invalid", self.invalid.is_some(), &of_text, "of text"),
            ("dims", self.dims.is_some(), &of_vectors, "`f32le`, `npy` or `csv`"),
            ("names", self.names.is_some(), &of_rows, "`f32le` or `npy`"),
            ("columns", !self.columns.is_empty(), &of_names, "`lines` or of tables"),
            ("schema", self.schema.is_some(), &of_tables, "`jsonl`, `csv` or `log`"),
            ("pattern", self.pattern.is_some(), &of_logs, "`log`"),
            ("start", self.start.is_some(), &of_records, "`lines` or `log`"),
            ("vector", !self.vector.is_empty(), &of_csv, "`csv`"),
            ("delimiter", self.delimiter.is_some(), &of_csv, "`csv`"),
            ("quote", self.quote.is_some(), &of_csv, "`csv`"),
            ("comment", self.comment.is_some(), &of_csv, "`csv`"),
            ("header", self.header.is_some(), &of_csv, "`csv`"),
            ("null", self.null.is_some(), &of_csv, "`csv`"),
        ];
        let mut mistakes = Mistakes::default();
        for (parameter, is_given, formats, names) in given {
            mistakes.refuse(is_given && !formats.contains(&self.format), || {
                let allowed = format!("`{parameter}` is for `format` {names} only");
                refuse(parameter, "a value", allowed)
            });
        }
        mistakes.refuse(self.on_error == Some(OnError::Reject) && !self.can_reject(), || {
            let allowed = "`reject` is for `format` `lines`, `sets`, `csv`, `jsonl` and `log` only";
            refuse("on_error", "reject", allowed)
        });
        let has_names = self.names.is_some() && of_rows.contains(&self.format);
        mistakes.refuse(has_names && self.action().goes_on(), || {
            let allowed = "with `on_error`: \"skip\", vectors would get the names of others";
            refuse("names", "a file", allowed)
        });
        if of_text.contains(&self.format) {
            mistakes.check(self.check_encoding());
        }
        mistakes.none()
    }

    /// Refuses unknown encodings, and encodings that a followed file cannot have.
    fn check_encoding(&self) -> Result<(), BindError> {
        let decoding = self.decoding()?;
        if self.follow && !decoding.keeps_line_ends() {
            let allowed = "`follow` reads encodings in which ASCII is one byte a character";
            return Err(refuse("encoding", decoding.encoding.name(), allowed));
        }
        Ok(())
    }

    /// Checks the parameters that the format needs, as far as the checks do not depend on the
    /// files.
    fn check_content(&self) -> Result<(), BindError> {
        let mut mistakes = Mistakes::default();
        match self.format {
            ReadFormat::Lines => {
                mistakes.check(self.text_lines());
                mistakes.check(self.beginning());
            }
            ReadFormat::Log => {
                mistakes.check(self.log_pattern());
                mistakes.check(self.beginning());
            }
            ReadFormat::Csv => {
                mistakes.check(self.dialect());
                if self.is_csv_table() {
                    mistakes.check(self.check_table());
                } else {
                    mistakes.check(self.csv_columns());
                }
            }
            ReadFormat::F32le => mistakes
                .refuse(self.dims.is_none(), || refuse("dims", "no value", "`f32le` needs `dims`")),
            _ => {}
        }
        if let (ReadFormat::Csv | ReadFormat::Jsonl, Some(TableSchema(columns))) =
            (self.format, &self.schema)
        {
            mistakes.check(schema::choose(columns, &self.columns));
        }
        mistakes.none()
    }

    /// Refuses a table of CSV with vectors.
    fn check_table(&self) -> Result<(), BindError> {
        if self.vector.is_empty() {
            return Ok(());
        }
        let allowed = "a table has no `vector`; leave out `schema`, or read lists of columns";
        Err(refuse("vector", "a list", allowed))
    }

    /// Coordinates of a vector: the parameter `dims`, or the length of the vectors of the first
    /// file.
    fn npy_dims(&self, files: &Files) -> Result<u32, BindError> {
        if let Some(dims) = self.dims {
            return Ok(dims);
        }
        let first = files.places.first();
        let Some(place @ Place::File(path)) = first.filter(|_| files.bytes.is_some()) else {
            let allowed = "vectors of standard input or of a pipe need `dims`";
            return Err(refuse("dims", "no value", allowed));
        };
        let blame = |error: ReadError| BindErrorKind::Other(Box::new(error)).at("paths");
        let path = name_of(path).into();
        match npy_header(place) {
            Ok(Ok(NpyHeader { dims, .. })) => {
                let allowed = format!("vectors of 1 to {DIMS_MAX} coordinates");
                let dims = u32::try_from(dims).ok().filter(|dims| (1..=DIMS_MAX).contains(dims));
                dims.ok_or_else(|| refuse("paths", format!("{path}"), allowed))
            }
            Ok(Err(source)) => Err(blame(ReadError::Npy { path, source })),
            Err(source) => Err(blame(ReadError::Read { path, source })),
        }
    }

    /// The open file of names.
    fn open_names(&self) -> Result<Option<Names>, BindError> {
        let open = |path: &PathBuf| Names::open(path, self.line_bytes_max);
        let names = self.names.as_ref().map(open).transpose();
        names.map_err(|error| BindErrorKind::Other(Box::new(error)).at("names"))
    }

    /// Rows of a table of JSON. The columns are given, or are inferred from the first rows of
    /// `files`.
    fn json_rows(&self, files: &Files, context: &BindContext) -> Result<JsonRows, BindError> {
        let schema = match &self.schema {
            Some(TableSchema(columns)) => schema::choose(columns, &self.columns)?,
            None => schema::choose(&self.first_columns(files)?, &self.columns)?,
        };
        let rows = JsonRows::new(schema::demanded(&schema, &context.demand))
            .map_err(|error| BindErrorKind::Other(Box::new(error)).at("schema"))?;
        Ok(rows.within(&context.memory))
    }

    /// The columns of the first rows of `files`: of the first file that has rows.
    fn first_columns(&self, files: &Files) -> Result<Fields, BindError> {
        let (path, first) = self.look_at(files, FirstRows::new)?;
        first.columns().map_err(|reason| schema::not_inferred(&path, &reason))
    }

    /// The first rows of `files` in a format that infers columns, and the path of their file: the
    /// first file that has rows, or the first file if no file has rows.
    pub(super) fn look_at<F: LineFormat>(
        &self,
        files: &Files,
        new: impl Fn() -> F,
    ) -> Result<(Arc<str>, F), BindError> {
        let Some(place) = files.places.first() else {
            let path = self.paths.first().map_or_else(|| "".into(), |path| paths::name(path));
            return Err(schema::not_inferred(&path, "no file is there yet"));
        };
        if files.bytes.is_none() {
            let reason = "standard input and pipes can be read only once";
            return Err(schema::not_inferred(&place.name(), reason));
        }
        let mut without_rows = None;
        for place in &files.places {
            let first = self.first_rows(place, new());
            let first = first.map_err(|error| BindErrorKind::Other(error).at("paths"))?;
            if first.rows() > 0 {
                return Ok((place.name(), first));
            }
            // The header of this file names the columns if no other file has rows.
            without_rows.get_or_insert((place.name(), first));
        }
        Ok(without_rows.expect("there is a file"))
    }

    /// The first rows of a file. This look passes over a bad row, since the run reports the row.
    fn first_rows<F: LineFormat>(&self, place: &Place, format: F) -> Result<F, OperatorError> {
        let files = Files { places: vec![place.clone()], ..Files::default() };
        let inputs = Inputs::new(files, OnError::Reject, true).decoding(self.decoding()?);
        let lines = self.lines(&MemoryBudget::of_process())?;
        let mut source = LineSource::new(inputs, format, first::ROWS, lines);
        let mut out = Output::new();
        while !source.is_full() && source.next(&mut out)? != SourceFlow::Finished {
            out.drain_sent().for_each(drop);
        }
        Ok(source.into_format())
    }

    /// The files that are read.
    fn files(&self) -> Result<Files, BindError> {
        let files = found(paths::resolve(&self.paths, self.action()))?;
        files.ok_or_else(|| refuse("paths", "an empty list", "name at least one file"))
    }

    /// Binds a source of `files`.
    fn bind_files(&self, mut files: Files, context: BindContext) -> Result<Fragment, BindError> {
        let is_text = !matches!(
            self.format,
            ReadFormat::U32le
                | ReadFormat::U64le
                | ReadFormat::F32le
                | ReadFormat::Npy
                | ReadFormat::Parquet
                | ReadFormat::Arrow
        );
        let mut claims = std::mem::take(&mut files.claims);
        claims.extend(self.names.iter().flat_map(|path| input_claims(path, "names")));
        let (bytes_max, memory) = (self.line_bytes_max, &context.memory);
        let texts = |unit| Texts::new(unit, bytes_max).within(memory);
        let decoding = self.decoding()?;
        let inputs = |files| {
            let inputs = Inputs::new(files, self.action(), is_text).decoding(decoding);
            inputs.leaving_out(context.outputs.clone())
        };
        let fragment = match self.format {
            ReadFormat::Lines => self.bind_texts((files, inputs), &context)?,
            ReadFormat::Log => self.bind_logs((files, inputs), &context)?,
            ReadFormat::Paragraphs => {
                let format = (texts(Unit::Paragraph), self.reading_files()?);
                self.bind_shared((files, inputs), &context, format)?
            }
            ReadFormat::Files => {
                let format = (texts(Unit::File), self.reading_files()?);
                self.bind_shared((files, inputs), &context, format)?
            }
            ReadFormat::Sets => {
                let sets = SetLines::new().within(memory);
                let format = (sets, self.reading_lines()?.with_line_ids());
                self.bind_divided((files, inputs), &context, format, (EachLine, 1))?
            }
            ReadFormat::Csv => self.bind_csv((files, inputs), &context)?,
            ReadFormat::Jsonl => {
                let rows = self.json_rows(&files, &context)?;
                let format = (rows, self.reading_lines()?);
                self.bind_divided((files, inputs), &context, format, (EachLine, 1))?
            }
            ReadFormat::Parquet => self.bind_tables(files, ParquetTable::open, &context)?,
            ReadFormat::Arrow => self.bind_tables(files, ArrowTable::open, &context)?,
            ReadFormat::U32le => self.bind_integers::<UInt32Type>((files, inputs), &context)?,
            ReadFormat::U64le => self.bind_integers::<UInt64Type>((files, inputs), &context)?,
            ReadFormat::F32le => {
                let dims = self.dims.expect("checked before");
                self.bind_vectors((files, inputs), &context, dims)?
            }
            ReadFormat::Npy => {
                let dims = self.npy_dims(&files)?;
                self.bind_vectors((files, inputs), &context, dims)?
            }
        };
        Ok(fragment.claiming(claims))
    }
}

/// The paths that were found, or all mistakes in the paths.
fn found<T>(named: Result<T, Vec<ReadError>>) -> Result<T, BindError> {
    let mut mistakes = Mistakes::default();
    let named = named.map_err(|errors| {
        for error in errors {
            let mistake: Result<(), _> = Err(BindErrorKind::Other(Box::new(error)).at("paths"));
            mistakes.check(mistake);
        }
    });
    mistakes.all(|| named.ok())
}

impl Configured for Read {
    const NAME: &'static str = "read";
    const SUMMARY: &'static str = "read files or standard input";
}

impl OperatorSpec for Read {
    fn operator(&self) -> &'static str {
        Self::NAME
    }

    fn input_ports(&self) -> RangeInclusive<usize> {
        0..=0
    }

    fn output_ports(&self) -> &'static [&'static str] {
        OnError::output_ports(self.on_error)
    }

    fn reject(&mut self) -> bool {
        self.can_reject() && OnError::reject(&mut self.on_error)
    }

    fn reads_stdin(&self) -> bool {
        let names = [paths::STDIN, "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"].map(Path::new);
        self.paths.iter().any(|path| names.contains(&path.as_path()))
    }

    fn bind(self: Box<Self>, _: &[SchemaRef], context: BindContext) -> Result<Fragment, BindError> {
        let mut mistakes = Mistakes::default();
        mistakes.check(self.check_ranges());
        mistakes.check(self.check_format());
        mistakes.check(self.check_not_followed());
        mistakes.check(self.check_content());
        let fragment = if self.follow && !self.paths.is_empty() {
            let named = mistakes.check(self.named());
            self.bind_following(mistakes.all(|| named)?, context)?
        } else {
            let files = mistakes.check(self.files());
            self.bind_files(mistakes.all(|| files)?, context)?
        };
        let rows = fragment.outputs.iter();
        let outputs = rows.flat_map(|rows| self.action().outputs(Arc::clone(rows))).collect();
        Ok(fragment.with_outputs(outputs))
    }
}
