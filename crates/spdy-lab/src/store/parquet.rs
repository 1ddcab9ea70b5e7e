//! A store as Parquet, with the same columns, for programs that read tables of millions of rows.
//!
//! ```text
//! INT           INT64                 NULL is no value, as in the store
//! REAL, FLOAT   DOUBLE
//! TEXT          BYTE_ARRAY, String
//! ```
//!
//! Rows are those of the store in its order, in groups of [`ROWS_PER_GROUP`], compressed with Snappy. The store's description of
//! its plan is in the file's metadata: `spdy.name`, `spdy.hash`, `spdy.program`, `spdy.plan`. The same store gives the same bytes.

use std::io::Write;
use std::sync::Arc;

use ::parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use ::parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use ::parquet::schema::types::{Type, TypePtr};

use crate::store::column::{COLUMNS, Column};
use crate::store::error::ExportError;
use crate::store::manifest::Manifest;
use crate::store::open::Store;
use crate::store::row::Row;
use crate::store::value::Value;

/// Rows that are buffered and written together.
pub const ROWS_PER_GROUP: usize = 8_192;

/// Writes every row of `store` to `out`. Returns the number of rows.
///
/// # Errors
///
/// The store cannot be read, or `out` cannot be written; a fraction in an integer column, which only imported loads may have.
pub fn write(store: &mut Store, out: &mut (impl Write + Send)) -> Result<usize, ExportError> {
    let properties = properties(store.contents()?);
    let mut writer = SerializedFileWriter::new(out, schema()?, Arc::new(properties))?;
    let (mut group, mut count, mut written) = (Vec::with_capacity(ROWS_PER_GROUP), 0, Ok(()));
    store.each_row(|row| {
        if written.is_err() {
            return;
        }
        group.push(row);
        count += 1;
        if group.len() == ROWS_PER_GROUP {
            written = write_group(&mut writer, &group);
            group.clear();
        }
    })?;
    written?;
    if !group.is_empty() {
        write_group(&mut writer, &group)?;
    }
    writer.close()?;
    Ok(count)
}

fn properties(contents: Manifest) -> WriterProperties {
    let metadata = [
        ("spdy.name", contents.name),
        ("spdy.hash", contents.hash),
        ("spdy.program", contents.program),
        ("spdy.plan", contents.plan),
    ];
    let metadata = metadata.map(|(key, value)| KeyValue::new(key.to_owned(), value));
    WriterProperties::builder()
        .set_created_by("spdy lab".to_owned())
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(metadata.into()))
        .build()
}

/// The Parquet type of a column.
fn physical(column: &Column) -> Physical {
    match column.declared {
        "REAL" | "FLOAT" => Physical::DOUBLE,
        "TEXT" => Physical::BYTE_ARRAY,
        _ => Physical::INT64,
    }
}

fn schema() -> Result<TypePtr, ParquetError> {
    let field = |column: &Column| {
        let physical = physical(column);
        let text = (physical == Physical::BYTE_ARRAY).then_some(LogicalType::String);
        let field = Type::primitive_type_builder(column.name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(text);
        field.build().map(Arc::new)
    };
    let fields = COLUMNS.iter().map(field).collect::<Result<_, _>>()?;
    let schema = Type::group_type_builder("loads").with_fields(fields);
    schema.build().map(Arc::new)
}

fn write_group<W: Write + Send>(
    writer: &mut SerializedFileWriter<W>,
    rows: &[Row],
) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    for (at, column) in COLUMNS.iter().enumerate() {
        let Some(mut place) = group.next_column()? else {
            unreachable!("the schema has {} columns", COLUMNS.len());
        };
        let values = rows.iter().map(|row| &row.values[at]);
        let odd = |value: &Value| {
            let name = column.name;
            ParquetError::General(format!("{name} is {value:?}, expected {}", column.declared))
        };
        match physical(column) {
            Physical::DOUBLE => {
                let number = |value: &Value| value.as_f64().ok_or_else(|| odd(value));
                write_column::<DoubleType>(&mut place, values, number)?;
            }
            Physical::BYTE_ARRAY => {
                let text = |value: &Value| {
                    let text = value.as_str().ok_or_else(|| odd(value))?;
                    Ok(ByteArray::from(text.as_bytes().to_vec()))
                };
                write_column::<ByteArrayType>(&mut place, values, text)?;
            }
            _ => {
                let whole = |value: &Value| match value {
                    Value::Integer(number) => Ok(*number),
                    other => Err(odd(other)),
                };
                write_column::<Int64Type>(&mut place, values, whole)?;
            }
        }
        place.close()?;
    }
    group.close()?;
    Ok(())
}

/// Writes the non-null values of `values` with their definition levels: level 1 is a value, level 0 is none.
fn write_column<'a, T: DataType>(
    place: &mut SerializedColumnWriter<'_>,
    values: impl Iterator<Item = &'a Value>,
    of: impl Fn(&Value) -> Result<T::T, ParquetError>,
) -> Result<(), ParquetError> {
    let (mut there, mut levels) = (Vec::new(), Vec::new());
    for value in values {
        levels.push(i16::from(*value != Value::Null));
        if *value != Value::Null {
            there.push(of(value)?);
        }
    }
    place
        .typed::<T>()
        .write_batch(&there, Some(&levels), None)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use ::parquet::record::Field;
    use bytes::Bytes;

    use super::*;
    use crate::store::column::position;
    use crate::store::location::Location;

    /// A store in memory with this number of rows, of which some have a value in every column and others in none. Its plan has one
    /// more load.
    fn store(rows: usize) -> Store {
        let contents = Manifest {
            name: "made".to_owned(),
            hash: "h".to_owned(),
            program: "p".to_owned(),
            model: None,
            runs: 1,
            cells: rows as u64 + 1,
            plan: String::new(),
            pages: Vec::new(),
        };
        let row = |number: usize| {
            let value = |column: &Column| match (number % 3, physical(column)) {
                (0, _) => Value::Null,
                (_, Physical::DOUBLE) => Value::Real(number as f64 / 7.0),
                (_, Physical::BYTE_ARRAY) => Value::text(format_args!("é {}", number % 11)),
                _ => Value::Integer(-(number as i64)),
            };
            let mut values: Vec<_> = COLUMNS.iter().map(value).collect();
            values[position("id")] = Value::from(number as u64 + 1);
            Row { values }
        };
        let rows: Vec<_> = (0..rows).map(row).collect();
        let memory = Location::File(":memory:".into());
        Store::create(&memory, &contents, &rows).expect("a store in memory")
    }

    fn written(store: &mut Store) -> Bytes {
        let mut bytes = Vec::new();
        write(store, &mut bytes).expect("memory takes all");
        bytes.into()
    }

    #[test]
    fn every_value_is_read_across_the_end_of_a_group() {
        let count = ROWS_PER_GROUP + 10;
        let mut store = store(count);
        let bytes = written(&mut store);
        assert_eq!(bytes, written(&mut store), "twice the same");
        let reader = SerializedFileReader::new(bytes).expect("it is Parquet");
        assert_eq!(reader.num_row_groups(), 2);
        let metadata = reader.metadata().file_metadata().key_value_metadata();
        let metadata = metadata.expect("metadata").iter();
        assert!(
            metadata
                .clone()
                .any(|it| it.key == "spdy.name" && it.value.as_deref() == Some("made"))
        );
        let mut back = reader.get_row_iter(None).expect("rows");
        let mut seen = 0;
        store
            .each_row(|row| {
                let read = back.next().expect("as many rows").expect("a row");
                for ((name, field), (column, value)) in
                    read.get_column_iter().zip(COLUMNS.iter().zip(&row.values))
                {
                    assert_eq!(name, column.name);
                    let field = match field {
                        Field::Null => Value::Null,
                        Field::Long(number) => Value::Integer(*number),
                        Field::Double(number) => Value::Real(*number),
                        Field::Str(text) => Value::text(text),
                        other => panic!("{name} is {other:?}"),
                    };
                    assert_eq!(field, *value, "{name} of row {seen}");
                }
                seen += 1;
            })
            .expect("memory can be read");
        assert_eq!(seen, count);
        assert!(back.next().is_none(), "a row too many");
    }

    #[test]
    fn half_a_millisecond_is_refused_where_whole_ones_are_required() {
        let mut store = store(2);
        let mut row = store.rows().expect("rows").remove(1);
        row.values[position("id")] = Value::Integer(99);
        row.values[position("cell")] = Value::text("another");
        row.values[position("onLoad")] = Value::Real(0.5);
        store.add(&[row]).expect("SQLite takes it");
        let error = write(&mut store, &mut Vec::new()).expect_err("no column for it");
        assert_eq!(
            error.to_string(),
            "cannot write Parquet: Parquet error: onLoad is Real(0.5), expected INT"
        );
    }
}
