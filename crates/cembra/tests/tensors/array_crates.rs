//! Tests conversions between tensors and the arrays of other crates: elements stay the same, and are copied only where
//! the documentation says so.

use cembra::Error;
use cembra::tensor::{Slice, Tensor, TensorErrorKind};
use ndarray::{Array, Array2, Array3, ArrayD, ArrayView, ArrayViewD, Axis, Ix1, IxDyn, array, s};

fn counted(extents: &[usize]) -> Tensor {
    Tensor::new(extents, (0..extents.iter().product::<usize>()).map(|number| number as f64).collect()).expect("fits")
}

fn kind<T>(made: Result<T, Error>) -> TensorErrorKind {
    match made {
        Ok(_) => panic!("not refused"),
        Err(error) => error.tensor_kind().expect("of tensors"),
    }
}

/// Returns views of all kinds: transposed, reversed, with steps, broadcast, diagonal, empty, and of one element.
fn views() -> Vec<Tensor> {
    let a = counted(&[3, 4, 5]);
    let step = |start, step, count| Slice { start, step, count };
    vec![
        a.clone(),
        a.transposed(&[2, 0, 1]).expect("axes"),
        a.sliced(&[step(2, -1, 3), step(1, 2, 2), step(4, -3, 2)]).expect("slices"),
        a.sliced(&[step(1, 1, 1), step(0, 1, 4), step(3, -1, 3)]).expect("slices"),
        a.sliced(&[step(0, 1, 3), step(4, 1, 0), step(0, 1, 5)]).expect("slices"),
        counted(&[4, 1]).broadcast_to(&[2, 4, 3]).expect("extents"),
        Tensor::from_parts(
            a.data().clone(),
            a.layout()
                .sliced(&[step(0, 1, 3), step(0, 1, 3), step(0, 1, 5)])
                .and_then(|layout| layout.with_axes(&[0, 0, 1]))
                .expect("a diagonal"),
        )
        .expect("within"),
        Tensor::scalar(7.0),
        counted(&[0, 3]),
    ]
}

#[test]
fn every_view_is_an_array_without_a_copy() {
    for tensor in views() {
        let array = ArrayViewD::<f64>::try_from(&tensor).expect("a view");
        assert_eq!(array.shape(), tensor.extents());
        assert_eq!(array.iter().copied().collect::<Vec<f64>>(), tensor.to_vec::<f64>().expect("floats"), "{tensor:?}");
        if let Some(first) = array.first() {
            let cembra::tensor::Data::Float64(memory) = tensor.data() else { panic!("floats") };
            assert!(memory.as_ptr_range().contains(&std::ptr::from_ref(first)), "{tensor:?}");
            let strides: Vec<isize> = (array.strides().iter().zip(array.shape()))
                .map(|(stride, extent)| if *extent == 1 { 0 } else { *stride })
                .collect();
            let own: Vec<isize> = (tensor.layout().strides().iter().zip(tensor.extents()))
                .map(|(stride, extent)| if *extent == 1 { 0 } else { *stride })
                .collect();
            assert_eq!(strides, own);
        }
        // One copy, into the order of the indices.
        let back = Tensor::try_from(array).expect("a tensor");
        assert_eq!(back, tensor);
        assert!(back.layout().is_row_major() && !std::ptr::eq(back.data(), tensor.data()));
    }
    assert_eq!(kind(ArrayViewD::<f32>::try_from(&counted(&[2]))), TensorErrorKind::ElementType);
    let truth = Tensor::new(&[2], vec![true, false]).expect("fits");
    assert_eq!(
        ArrayViewD::try_from(&truth).expect("a view").into_dimensionality::<Ix1>(),
        Ok(ArrayView::from(&[true, false]))
    );
}

#[test]
fn an_array_of_any_strides_is_a_tensor_in_its_memory() {
    let check = |array: ArrayD<i32>| {
        let (memory, elements) = (array.as_ptr(), array.iter().copied().collect::<Vec<i32>>());
        let shape = array.shape().to_vec();
        let tensor = Tensor::try_from(array).expect("a tensor");
        assert_eq!((tensor.extents(), tensor.to_vec::<i32>().expect("integers")), (&shape[..], elements));
        if !tensor.layout().is_empty() {
            let cembra::tensor::Data::Int32(own) = tensor.data() else { panic!("integers") };
            assert_eq!(std::ptr::from_ref(&own[tensor.layout().offset()]), memory);
        }
        tensor
    };
    let a = Array::from_iter(0..24).into_shape_with_order((2, 3, 4)).expect("fits").into_dyn();
    assert!(check(a.clone()).layout().is_row_major());
    assert_eq!(check(a.clone().permuted_axes(IxDyn(&[2, 0, 1]))).layout().strides(), [1, 12, 4]);
    let mut turned = a.clone();
    turned.invert_axis(Axis(1));
    turned.slice_axis_inplace(Axis(2), (1..4).into());
    let turned = check(turned);
    assert_eq!((turned.layout().strides(), turned.layout().offset()), (&[12, -4, 1][..], 9));
    let mut part = a.clone();
    part.slice_axis_inplace(Axis(0), (1..).into());
    assert_eq!(check(part).layout().offset(), 12);
    check(Array3::<i32>::zeros((2, 0, 4)).into_dyn());
    check(Array::from_elem(IxDyn(&[]), 5));
    assert_eq!(kind(Tensor::try_from(Array::from_elem(IxDyn(&[1; 17]), 5))), TensorErrorKind::RankMismatch);
    let view = a.slice(s![1, ..;2, ..]);
    assert_eq!(
        Tensor::try_from(view).expect("a tensor").to_vec::<i32>().expect("integers"),
        [12, 13, 14, 15, 20, 21, 22, 23]
    );
}

#[test]
fn a_tensor_gives_its_memory_away_where_nobody_else_has_it() {
    let moved = |tensor: Tensor, is_moved: bool| {
        let (elements, extents) = (tensor.to_vec::<f64>().expect("floats"), tensor.extents().to_vec());
        let cembra::tensor::Data::Float64(memory) = tensor.data() else { panic!("floats") };
        let range = memory.as_ptr() as usize..memory.as_ptr_range().end as usize;
        let array = ArrayD::<f64>::try_from(tensor).expect("an array");
        assert_eq!((array.shape(), array.iter().copied().collect::<Vec<f64>>()), (&extents[..], elements));
        assert_eq!(range.contains(&(array.as_ptr() as usize)), is_moved);
    };
    // Of the tensor nothing is left.
    fn turned(tensor: Tensor) -> Tensor {
        tensor.transposed(&[1, 0]).expect("axes")
    }
    fn sliced(tensor: Tensor, slices: [Slice; 2]) -> Tensor {
        tensor.sliced(&slices).expect("slices")
    }
    let step = |start, step, count| Slice { start, step, count };
    moved(counted(&[2, 3]), true);
    moved(turned(counted(&[2, 3])), true);
    moved(sliced(counted(&[2, 3]), [step(1, -1, 2), step(0, 1, 3)]), true);
    // What sees a part only, or one element under several indices, is copied; so is what others have, too.
    moved(sliced(counted(&[2, 3]), [step(1, 1, 1), step(0, 1, 3)]), false);
    moved(sliced(counted(&[2, 3]), [step(0, 1, 1), step(0, 1, 3)]), false);
    let broadcast = counted(&[1, 3]).broadcast_to(&[4, 3]).expect("extents");
    moved(broadcast, false);
    let shared = counted(&[2, 3]);
    moved(turned(shared.clone()), false);
    moved(counted(&[0, 3]), false);
    assert_eq!(kind(ArrayD::<i64>::try_from(shared)), TensorErrorKind::ElementType);
}

#[test]
fn what_comes_back_is_what_was_given() {
    let a: Array2<f32> = array![[1.0, 2.0], [3.0, 4.0]];
    let tensor = Tensor::try_from(a.clone().reversed_axes()).expect("a tensor");
    let back = ArrayD::<f32>::try_from(tensor).expect("an array");
    assert_eq!(back, a.t().into_dyn());
    assert_eq!(back.strides(), [1, 2]);
}

#[cfg(feature = "faer")]
#[test]
fn matrices_of_faer_are_views_of_tensors() {
    use cembra::tensor::{as_mat_ref, from_mat_ref};
    use faer::{Mat, MatRef};
    for tensor in views() {
        if tensor.extents().len() != 2 {
            assert_eq!(kind(as_mat_ref::<f64>(&tensor)), TensorErrorKind::RankMismatch);
            continue;
        }
        let matrix = as_mat_ref::<f64>(&tensor).expect("a matrix");
        assert_eq!([matrix.nrows(), matrix.ncols()], tensor.extents());
        for (row, column) in (0..matrix.nrows()).flat_map(|row| (0..matrix.ncols()).map(move |column| (row, column))) {
            assert_eq!(matrix[(row, column)], tensor.get::<f64>(&[row, column]).expect("an index"));
        }
        assert_eq!(from_mat_ref(matrix).expect("a tensor"), tensor);
    }
    let a = counted(&[3, 4]);
    let backwards =
        a.sliced(&[Slice { start: 2, step: -2, count: 2 }, Slice { start: 3, step: -1, count: 4 }]).expect("slices");
    let matrix = as_mat_ref::<f64>(&backwards).expect("a matrix");
    assert_eq!((matrix.row_stride(), matrix.col_stride(), matrix[(0, 0)], matrix[(1, 3)]), (-8, -1, 11.0, 0.0));
    let product: Mat<f64> = matrix * as_mat_ref::<f64>(&a.transposed(&[1, 0]).expect("axes")).expect("a matrix");
    assert_eq!([product[(0, 1)], product[(1, 2)]], [204.0, 52.0]);
    assert_eq!(kind(as_mat_ref::<f32>(&a)), TensorErrorKind::ElementType);
    // Memory of a matrix may be longer than its columns.
    let square = Mat::from_fn(5, 3, |row, column| (10 * row + column) as f32);
    let part: MatRef<'_, f32> = square.as_ref().submatrix(1, 1, 2, 2);
    assert_eq!(
        from_mat_ref(part.transpose()).expect("a tensor").to_vec::<f32>().expect("floats"),
        [11.0, 21.0, 12.0, 22.0]
    );
}
