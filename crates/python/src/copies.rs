//! Copies the parts of Arrow arrays that must be valid: offsets, keys, views and strings. Another Python thread may write to an array's memory while
//! the library reads it, so these parts are copied first, and the copies are checked. Numbers and bits may have any value, so they are read in place.

use crate::bounds::Bounds;
use crate::errors;
use arrow_array::{Array, make_array};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType};
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::collections::HashMap;
use std::ops::Range;

/// The longest string, in bytes, that an Arrow string view (a record of 16 bytes) stores itself. A longer string is in a buffer, and the view has its
/// position.
const INLINE: u32 = 12;

/// The number of string views that are read between two checks for signals and for a cancelled token.
const VIEWS_AT_ONCE: usize = 1 << 16;

/// The buffers that one import has copied, so that no buffer is copied twice. An import reads an array, or a column of a table.
pub(crate) struct Copies<'a, 'py> {
    /// The object that is imported.
    object: Bound<'py, PyAny>,
    /// The Python objects that own the buffers that are imported.
    owners: Vec<Bound<'py, PyAny>>,
    bounds: &'a Bounds,
    /// The address ranges of the owners' buffers, sorted by their start: `None` until the first string is copied, and `Some(None)` if the package of
    /// the owners does not report its buffers.
    extents: Option<Option<Vec<Range<usize>>>>,
    /// The buffers that were copied so far, by address and length.
    sources: HashMap<(usize, usize), Source>,
    /// The values of dictionaries that were copied so far: the original array and its copy, by the address of the original's last buffer. Most chunks
    /// share a dictionary, which is then copied once.
    dictionaries: HashMap<usize, (ArrayData, ArrayData)>,
}

/// The copies of one buffer: parts of it, and the whole buffer once the parts together would be larger than the buffer.
#[derive(Default)]
struct Source {
    /// The bytes of all parts that were requested so far. Above the buffer's length, the whole buffer is copied instead of further parts.
    copied: usize,
    whole: Option<Buffer>,
}

/// An Arrow array that is being copied: its own buffers are copied already, and some of its children are not.
struct Node {
    data_type: DataType,
    len: usize,
    offset: usize,
    nulls: Option<NullBuffer>,
    buffers: Vec<Buffer>,
    children: std::vec::IntoIter<ArrayData>,
    made: Vec<ArrayData>,
    /// The original array, if this array holds the values of a dictionary; else `None`.
    values: Option<ArrayData>,
}

/// The exception for an error that Arrow reports.
fn refused(error: &ArrowError) -> PyErr {
    errors::data(error.to_string())
}

/// The exception for an array with `what`, such as offsets, outside of its memory.
fn outside(what: &str) -> PyErr {
    errors::data(format!("an Arrow array has {what} outside of its memory"))
}

/// Makes an empty list with room for `count` elements. Returns an error if there is not enough memory.
pub(crate) fn roomy<T>(count: usize) -> PyResult<Vec<T>> {
    let mut list = Vec::new();
    let no_memory = |_| errors::data(format!("there is no memory for a copy of {count} elements of an Arrow array"));
    list.try_reserve_exact(count).map_err(no_memory)?;
    Ok(list)
}

impl<'a, 'py> Copies<'a, 'py> {
    /// Begins the import of `object`, whose buffers belong to the Python objects `owners`. Nothing is copied yet.
    pub(crate) fn of(object: &Bound<'py, PyAny>, owners: Vec<Bound<'py, PyAny>>, bounds: &'a Bounds) -> Self {
        let object = object.clone();
        Copies { object, owners, bounds, extents: None, sources: HashMap::new(), dictionaries: HashMap::new() }
    }

    /// Copies the keys, offsets, views and strings of an array and its children. Checks the resulting array and returns it.
    pub(crate) fn checked(&mut self, data: ArrayData) -> PyResult<ArrayData> {
        let mut open = vec![self.node(data)?];
        loop {
            let Some(last) = open.last_mut() else { return Err(outside("children")) };
            if let Some(child) = last.children.next() {
                let values = matches!(last.data_type, DataType::Dictionary(..)).then(|| child.clone());
                match values.as_ref().and_then(|values| self.known(values)) {
                    Some(known) => last.made.push(known),
                    None => open.push(Node { values, ..self.node(child)? }),
                }
                continue;
            }
            let Some(mut done) = open.pop() else { return Err(outside("children")) };
            let values = done.values.take();
            let made = self.finished(done)?;
            if let Some(values) = values
                && let Some(place) = place(&values)
            {
                self.dictionaries.insert(place, (values, made.clone()));
            }
            match open.last_mut() {
                Some(parent) => parent.made.push(made),
                None => return Ok(made),
            }
        }
    }

    /// Returns the copy of the dictionary values `values`; `None` if no earlier chunk had the same values.
    fn known(&self, values: &ArrayData) -> Option<ArrayData> {
        let (found, copy) = self.dictionaries.get(&place(values)?)?;
        found.ptr_eq(values).then(|| copy.clone())
    }

    /// Copies the buffers of an array whose contents must be valid, such as offsets and strings. The array's children are not copied yet.
    fn node(&mut self, data: ArrayData) -> PyResult<Node> {
        self.bounds.check(self.object.py())?;
        let (data_type, len, nulls, offset, buffers, children) = data.into_parts();
        let mut node = Node {
            data_type,
            len,
            offset,
            nulls,
            buffers,
            children: children.into_iter(),
            made: Vec::new(),
            values: None,
        };
        match &node.data_type {
            DataType::Utf8 | DataType::Binary => self.strings::<i32>(&mut node)?,
            DataType::LargeUtf8 | DataType::LargeBinary => self.strings::<i64>(&mut node)?,
            DataType::Utf8View | DataType::BinaryView => self.views(&mut node)?,
            DataType::List(_) => self.lists::<i32>(&mut node)?,
            DataType::LargeList(_) => self.lists::<i64>(&mut node)?,
            DataType::Dictionary(keys, _) => {
                let size = keys.primitive_width().unwrap_or(1);
                node.buffers = vec![self.elements(&node, size, 0)?];
                // The key of a null is not checked, so the nulls must not change after the check.
                node.nulls = node.nulls.take().map(|nulls| self.nulls(&nulls)).transpose()?;
                node.offset = 0;
            }
            _ => {}
        }
        Ok(node)
    }

    /// Copies elements of the first buffer, which have `size` bytes each: those of the array, and `more` elements after them.
    fn elements(&mut self, node: &Node, size: usize, more: usize) -> PyResult<Buffer> {
        let source = node.buffers.first().ok_or_else(|| outside("elements"))?;
        let ends = [Some(node.offset), node.offset.checked_add(node.len).and_then(|end| end.checked_add(more))];
        let [Some(start), Some(end)] = ends.map(|at| at?.checked_mul(size)) else { return Err(outside("elements")) };
        self.copy(source, start..end)
    }

    /// Copies presence bits.
    fn nulls(&mut self, nulls: &NullBuffer) -> PyResult<NullBuffer> {
        let bits = nulls.inner();
        let (first, end) = (bits.offset() / 8, bits.offset().saturating_add(bits.len()).div_ceil(8));
        let copy = self.copy(bits.inner(), first..end)?;
        Ok(NullBuffer::new(BooleanBuffer::new(copy, bits.offset() % 8, bits.len())))
    }

    /// Copies the offsets of an array, and subtracts the first offset from each. Also returns the range from the first offset to the last, before the
    /// subtraction.
    fn offsets<T: ArrowNativeType>(&mut self, node: &Node) -> PyResult<(Buffer, Range<usize>)> {
        let source = node.buffers.first().ok_or_else(|| outside("offsets"))?;
        // An array without elements may have no offset.
        if node.len == 0 && source.is_empty() {
            return Ok((source.clone(), 0..0));
        }
        let copy = self.elements(node, size_of::<T>(), 1)?;
        let points: &[T] = copy.typed_data();
        let end = |point: Option<&T>| point.and_then(|point| point.to_usize()).ok_or_else(|| outside("offsets"));
        let range = end(points.first())?..end(points.last())?;
        if range.start == 0 {
            return Ok((copy, range));
        }
        let mut moved = roomy(points.len())?;
        for point in points {
            let point = point.to_usize().and_then(|point| point.checked_sub(range.start));
            moved.push(point.and_then(T::from_usize).ok_or_else(|| outside("offsets"))?);
        }
        Ok((Buffer::from_vec(moved), range))
    }

    /// Copies the offsets and the bytes of strings.
    fn strings<T: ArrowNativeType>(&mut self, node: &mut Node) -> PyResult<()> {
        let (offsets, range) = self.offsets::<T>(node)?;
        let source = node.buffers.get(1).ok_or_else(|| outside("strings"))?.clone();
        // Arrow's interface does not say how long the buffer is: the last offset does.
        if !range.is_empty() {
            let end = source.as_ptr().addr().checked_add(range.end).ok_or_else(|| outside("strings"))?;
            self.within(source.as_ptr().addr()..end)?;
        }
        node.buffers = vec![offsets, self.copy(&source, range)?];
        node.offset = 0;
        Ok(())
    }

    /// Copies the views of strings and the bytes that they point to.
    fn views(&mut self, node: &mut Node) -> PyResult<()> {
        let mut views = self.elements(node, size_of::<u128>(), 0)?;
        let all: &[u128] = views.typed_data();
        let (_, buffers) = node.buffers.split_first().ok_or_else(|| outside("views"))?;
        let mut seen: Vec<Range<usize>> = roomy(buffers.len())?;
        seen.resize(buffers.len(), 0..0);
        for (at, view) in all.iter().enumerate() {
            if at % VIEWS_AT_ONCE == 0 {
                self.bounds.check(self.object.py())?;
            }
            let [len, buffer, first] = parts(*view);
            if len > INLINE {
                let seen = seen.get_mut(buffer as usize).ok_or_else(|| outside("views"))?;
                let end = (first as usize).checked_add(len as usize).ok_or_else(|| outside("views"))?;
                let first = if seen.end == 0 { first as usize } else { seen.start.min(first as usize) };
                *seen = first..seen.end.max(end);
            }
        }
        let mut copies = roomy(buffers.len().saturating_add(1))?;
        for (buffer, seen) in buffers.iter().zip(&seen) {
            copies.push(self.copy(buffer, seen.clone())?);
        }
        if seen.iter().any(|seen| seen.start > 0) {
            let mut moved = roomy(all.len())?;
            moved.extend(all.iter().map(|view| {
                let [len, buffer, _] = parts(*view);
                let before = seen.get(buffer as usize).filter(|_| len > INLINE).map_or(0, |seen| seen.start);
                view.wrapping_sub((before as u128) << 96)
            }));
            views = Buffer::from_vec(moved);
        }
        copies.insert(0, views);
        (node.buffers, node.offset) = (copies, 0);
        Ok(())
    }

    /// Copies the offsets of lists. The child array is cut to the elements between the first offset and the last.
    fn lists<T: ArrowNativeType>(&mut self, node: &mut Node) -> PyResult<()> {
        let (offsets, range) = self.offsets::<T>(node)?;
        let child = node.children.next().ok_or_else(|| outside("elements"))?;
        let child = match range {
            Range { start: 0, end } if end == child.len() => child,
            Range { start, end } if start <= end && end <= child.len() => {
                make_array(child).slice(start, end.saturating_sub(start)).to_data()
            }
            _ => return Err(outside("elements")),
        };
        (node.buffers, node.offset) = (vec![offsets], 0);
        node.children = vec![child].into_iter();
        Ok(())
    }

    /// Copies a range of a buffer's bytes. All copies of one buffer together take at most twice its memory.
    fn copy(&mut self, source: &Buffer, range: Range<usize>) -> PyResult<Buffer> {
        // An array without elements may begin anywhere.
        if range.start == range.end {
            return copied(&[]);
        }
        let part = source.as_slice().get(range.clone()).ok_or_else(|| outside("elements"))?;
        let known = self.sources.entry((source.as_ptr().addr(), source.len())).or_default();
        known.copied = known.copied.saturating_add(part.len());
        if known.copied <= source.len() {
            self.bounds.claim(&self.object, part.len() as u64)?;
            return copied(part);
        }
        let whole = match &known.whole {
            Some(whole) => whole.clone(),
            None => {
                self.bounds.claim(&self.object, source.len() as u64)?;
                known.whole.insert(copied(source.as_slice())?).clone()
            }
        };
        Ok(whole.slice_with_length(range.start, part.len()))
    }

    /// Checks that the addresses `bytes` of strings lie in a buffer of the owners, if their package reports the lengths of buffers.
    fn within(&mut self, bytes: Range<usize>) -> PyResult<()> {
        let extents = match &self.extents {
            Some(known) => known,
            None => self.extents.insert(extents(&self.owners)?),
        };
        let Some(extents) = extents else { return Ok(()) };
        let at = extents.partition_point(|extent| extent.start <= bytes.start);
        let extent = at.checked_sub(1).and_then(|at| extents.get(at));
        if extent.is_some_and(|extent| bytes.end <= extent.end) { Ok(()) } else { Err(outside("strings")) }
    }

    /// Builds the array from the copies of a node, and checks it.
    fn finished(&self, node: Node) -> PyResult<ArrayData> {
        let Node { data_type, len, offset, nulls, buffers, made, .. } = node;
        // Arrow would check the text of each view, even if all views point to the same bytes.
        let is_text = data_type == DataType::Utf8View;
        let checked = if is_text { DataType::BinaryView } else { data_type };
        let made = ArrayData::builder(checked).len(len).offset(offset).nulls(nulls).buffers(buffers).child_data(made);
        let made = made.build().map_err(|error| refused(&error))?;
        if !is_text {
            return Ok(made);
        }
        self.check_texts(&made)?;
        // SAFETY: STRING-VIEW: the views point into these buffers, which have no other owner, and each view was found to be UTF-8.
        Ok(unsafe { made.into_builder().data_type(DataType::Utf8View).build_unchecked() })
    }

    /// Checks that all views of an array are UTF-8. The bytes of overlapping views are read once, and each view must begin and end at a character.
    fn check_texts(&self, array: &ArrayData) -> PyResult<()> {
        let no_text = || errors::data("an Arrow array has a text that is not UTF-8");
        let (views, buffers) = array.buffers().split_first().ok_or_else(|| outside("views"))?;
        let views: &[u128] = views.typed_data();
        let mut long: Vec<(u32, u32, u32)> = roomy(views.len())?;
        for views in views.chunks(VIEWS_AT_ONCE) {
            self.bounds.check(self.object.py())?;
            for view in views {
                let [len, buffer, first] = parts(*view);
                if len > INLINE {
                    long.push((buffer, first, len));
                } else if std::str::from_utf8(&view.to_le_bytes()[4..][..len as usize]).is_err() {
                    return Err(no_text());
                }
            }
        }
        long.sort_unstable();
        let mut rest = long.as_slice();
        while let Some((buffer, start, _)) = rest.first() {
            let range =
                |(_, first, len): &(u32, u32, u32)| *first as usize..(*first as usize).saturating_add(*len as usize);
            let (start, mut end) = (*start as usize, *start as usize);
            let overlaps = rest.iter().take_while(|view| {
                let is_next = view.0 == *buffer && range(view).start <= end;
                end = if is_next { end.max(range(view).end) } else { end };
                is_next
            });
            let (views, others) = rest.split_at(overlaps.count());
            let bytes = buffers.get(*buffer as usize).and_then(|buffer| buffer.get(start..end));
            let text = std::str::from_utf8(bytes.ok_or_else(|| outside("views"))?).map_err(|_| no_text())?;
            for views in views.chunks(VIEWS_AT_ONCE) {
                self.bounds.check(self.object.py())?;
                let is_text = |view| text.get(range(view).start - start..range(view).end - start).is_some();
                if !views.iter().all(is_text) {
                    return Err(no_text());
                }
            }
            rest = others;
        }
        Ok(())
    }
}

/// Returns the length of a view, the index of its buffer, and the position of its first byte. The last two are meaningless for a view of at most
/// `INLINE` bytes.
fn parts(view: u128) -> [u32; 3] {
    [0, 64, 96].map(|shift| (view >> shift) as u32)
}

/// The address of the last buffer of a dictionary's values; `None` if they have no buffer.
fn place(values: &ArrayData) -> Option<usize> {
    values.buffers().last().map(|buffer| buffer.as_ptr().addr())
}

/// Copies bytes to new memory, aligned for every element type.
fn copied(bytes: &[u8]) -> PyResult<Buffer> {
    let mut words: Vec<u128> = roomy(bytes.len().div_ceil(size_of::<u128>()))?;
    let (whole, rest) = bytes.as_chunks();
    words.extend(whole.iter().map(|word| u128::from_ne_bytes(*word)));
    if !rest.is_empty() {
        let mut last = [0; size_of::<u128>()];
        last[..rest.len()].copy_from_slice(rest);
        words.push(u128::from_ne_bytes(last));
    }
    Ok(Buffer::from_vec(words).slice_with_length(0, bytes.len()))
}

/// Returns true if the class of `object`, or a base class of it, belongs to pyarrow.
pub(crate) fn is_pyarrow(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    for class in object.get_type().mro().iter() {
        if class.cast_into::<PyType>()?.module()?.to_cow()?.starts_with("pyarrow.") {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The address ranges of the buffers of pyarrow objects, sorted by their start. A range is extended so that it does not end before an earlier one.
/// `None` for objects of other packages, which guarantee that offsets are valid while arrays are imported.
fn extents(owners: &[Bound<'_, PyAny>]) -> PyResult<Option<Vec<Range<usize>>>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut open = owners.to_vec();
    for owner in owners {
        if !is_pyarrow(owner)? {
            return Ok(None);
        }
    }
    while let Some(object) = open.pop() {
        let Some(buffers) = object.getattr_opt("buffers")? else {
            for parts in ["columns", "chunks"] {
                if let Some(parts) = object.getattr_opt(parts)? {
                    open.extend(parts.try_iter()?.collect::<PyResult<Vec<_>>>()?);
                }
            }
            continue;
        };
        for buffer in buffers.call0()?.try_iter()? {
            let buffer = buffer?;
            if !buffer.is_none() {
                let start: usize = buffer.getattr("address")?.extract()?;
                found.push(start..start.saturating_add(buffer.getattr("size")?.extract()?));
            }
        }
        // The buffers of an array are those of its children too, but not those of a dictionary.
        open.extend(object.getattr_opt("dictionary")?);
        open.extend(object.getattr_opt("storage")?);
        let fields: usize = object.getattr("type")?.getattr("num_fields")?.extract()?;
        if fields > 0 {
            open.extend(object.getattr_opt("values")?);
            if object.hasattr("field")? {
                open.extend((0..fields).map(|at| object.call_method1("field", (at,))).collect::<PyResult<Vec<_>>>()?);
            }
        }
    }
    found.sort_unstable_by_key(|extent| (extent.start, extent.end));
    let mut end = 0;
    for extent in &mut found {
        end = extent.end.max(end);
        extent.end = end;
    }
    Ok(Some(found))
}
