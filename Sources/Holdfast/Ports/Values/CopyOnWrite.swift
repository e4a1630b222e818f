// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A value behind one reference that is copied when a shared one is changed.
///
/// What has many parts and is handed from stage to stage would count each part's references up and down at every hand-over, which is
/// most of what a call costs that succeeds at once.
///
/// Proof that it is Sendable: what lies behind the reference is changed in `_modify` alone, and only while this copy holds the only
/// reference to it, so that nobody else reads or writes it then; `Value` is Sendable itself. CopyOnWriteStressTests changes copies
/// from many threads.
struct CopyOnWrite<Value: Sendable>: @unchecked Sendable {
    // A managed buffer is reached without the run-time check of exclusive access, which the uniqueness above makes needless.
    private var buffer: ManagedBuffer<Value, Void>

    /// A value of its own; costs one allocation.
    init(_ value: Value) {
        buffer = .create(minimumCapacity: 0) { _ in value }
    }

    /// The value; a change to it is seen by this copy alone.
    var value: Value {
        @inline(__always)
        _read { yield buffer.header }
        @inline(__always)
        _modify {
            if !isKnownUniquelyReferenced(&buffer) {
                let copy = buffer.header
                buffer = .create(minimumCapacity: 0) { _ in copy }
            }
            yield &buffer.header
        }
    }
}
