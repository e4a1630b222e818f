// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// A value behind one reference that is copied when a shared one is changed.
///
/// What has many parts and is handed from stage to stage would count each part's references up and down at every hand-over, which is
/// most of what a call costs that succeeds at once.
///
/// Proof: what lies behind the reference is changed in `_modify` alone, and only while this copy holds the only
/// reference to it, so that nobody else reads or writes it then; `Value` is Sendable itself. CopyOnWriteTests changes copies from
/// many tasks.
struct CopyOnWrite<Value: Sendable>: @unchecked Sendable {
    private final class Box {
        // The uniqueness above makes the check at run time needless, which each access would pay for.
        @exclusivity(unchecked)
        var value: Value

        init(_ value: Value) {
            self.value = value
        }
    }

    private var box: Box

    /// A value of its own; costs one allocation.
    init(_ value: Value) {
        box = Box(value)
    }

    /// Whether both are one and the same, so that neither was changed since one was copied from the other.
    func isSame(as other: CopyOnWrite) -> Bool { box === other.box }

    /// The value; a change to it is seen by this copy alone.
    var value: Value {
        @inline(__always)
        _read { yield box.value }
        @inline(__always)
        _modify {
            if !isKnownUniquelyReferenced(&box) { box = Box(box.value) }
            yield &box.value
        }
    }
}
