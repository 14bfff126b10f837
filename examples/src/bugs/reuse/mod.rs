//! Buffers that are used again before those who still need them are done.

mod corner_put_twice;
mod credit_before_the_read;
mod credit_before_the_stream;
mod forwarded_before_it_came;
mod get_nbi_fenced;
mod get_nbi_read_early;
mod halo_without_second_barrier;
mod slot_without_credit;
mod source_changed;
mod staging_buffer;

crate::chapter! { "reuse":
    source_changed,
    staging_buffer,
    get_nbi_read_early,
    get_nbi_fenced,
    slot_without_credit,
    halo_without_second_barrier,
    credit_before_the_read,
    credit_before_the_stream,
    forwarded_before_it_came,
    corner_put_twice,
}
