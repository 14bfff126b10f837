//! Work on streams beside the host, and who completes what.

mod event_recorded_too_early;
mod flush_of_another_stream;
mod get_nbi_synchronized;
mod host_barrier_for_a_stream;
mod host_quiet_for_a_stream;
mod isend_without_fence;
mod nbi_then_signal;
mod quiet_before_the_start;
mod quiet_claimed_by_a_stream;
mod quiet_claimed_by_another_stream;
mod read_before_synchronize;
mod source_changed_by_the_host;
mod stream_barrier_for_the_host;
mod stream_quiet_for_the_host;
mod synchronize_taken_for_quiet;
mod two_streams_without_event;
mod wait_before_signal;
mod wait_on_stream_read_on_host;
mod wrong_stream_synchronized;

crate::chapter! { "streams":
    isend_without_fence,
    nbi_then_signal,
    synchronize_taken_for_quiet,
    host_quiet_for_a_stream,
    stream_quiet_for_the_host,
    host_barrier_for_a_stream,
    stream_barrier_for_the_host,
    quiet_claimed_by_a_stream,
    quiet_claimed_by_another_stream,
    wait_on_stream_read_on_host,
    read_before_synchronize,
    wrong_stream_synchronized,
    get_nbi_synchronized,
    source_changed_by_the_host,
    flush_of_another_stream,
    two_streams_without_event,
    event_recorded_too_early,
    wait_before_signal,
    quiet_before_the_start,
}
