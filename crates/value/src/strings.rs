//! Strings that are kept for an array, in Arrow's layout of views: a short one lies in its view, of a longer one the view says
//! where it is. Whether they are texts or bytes is said by whoever has them.

/// The most bytes that a view holds itself.
const INLINE: usize = 12;

/// When a buffer is full: offsets are 32 bits wide.
const BUFFER: usize = 1 << 30;

/// Strings, each by its place.
#[derive(Clone, Debug, Default)]
pub struct StringViews {
    views: Vec<u128>,
    buffers: Vec<Vec<u8>>,
}

impl StringViews {
    /// Strings in Arrow's layout.
    ///
    /// `None` if a view does not lie in the buffers.
    #[must_use]
    pub fn from_parts(views: Vec<u128>, buffers: Vec<Vec<u8>>) -> Option<Self> {
        let made = StringViews { views, buffers };
        (0..made.len()).all(|at| made.get(at).is_some()).then_some(made)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.views.len()
    }

    /// True if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.views.is_empty()
    }

    /// The views, and what they view.
    #[must_use]
    pub fn parts(&self) -> (&[u128], &[Vec<u8>]) {
        (&self.views, &self.buffers)
    }

    /// The same, to be kept.
    #[must_use]
    pub fn into_parts(self) -> (Vec<u128>, Vec<Vec<u8>>) {
        (self.views, self.buffers)
    }

    /// Bytes of memory they hold.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        16 * self.views.capacity() + self.buffers.iter().map(Vec::capacity).sum::<usize>()
    }

    /// Adds a string.
    pub fn push(&mut self, bytes: &[u8]) {
        let len = bytes.len();
        let mut view = [0; 16];
        view[..4].copy_from_slice(&(len as u32).to_le_bytes());
        if len <= INLINE {
            view[4..4 + len].copy_from_slice(bytes);
        } else {
            if self.buffers.last().is_none_or(|last| last.len() + len > BUFFER) {
                self.buffers.push(Vec::new());
            }
            let number = self.buffers.len() - 1;
            let buffer = &mut self.buffers[number];
            view[4..8].copy_from_slice(&bytes[..4]);
            view[8..12].copy_from_slice(&(number as u32).to_le_bytes());
            view[12..].copy_from_slice(&(buffer.len() as u32).to_le_bytes());
            buffer.extend_from_slice(bytes);
        }
        self.views.push(u128::from_le_bytes(view));
    }

    /// The bytes of a string; none behind the last.
    #[must_use]
    pub fn get(&self, at: usize) -> Option<&[u8]> {
        let view = self.views.get(at)?;
        let [len, _, buffer, offset] = [0, 32, 64, 96].map(|shift| (view >> shift) as u32 as usize);
        if len > INLINE {
            return self.buffers.get(buffer)?.get(offset..offset.checked_add(len)?);
        }
        // SAFETY: STRING-VIEW: the view is 16 bytes, and the string in it lies behind the first four, little-endian as it is in
        // Arrow.
        let bytes: &[u8] = unsafe { std::slice::from_raw_parts(std::ptr::from_ref(view).cast(), 16) };
        bytes.get(4..4 + len)
    }
}
