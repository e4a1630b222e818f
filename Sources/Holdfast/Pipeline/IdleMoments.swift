// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

private import Synchronization

/// Which moments the hooks of a chain do not implement, as far as that was found out: they are not called any more.
///
/// The default implementation of a moment says so when it runs. It runs for a type that does not implement the moment and for no
/// other, so one call tells for all that follow.
final class IdleMoments: Sendable {
    enum Moment: Sendable {
        case schedule
        case success
    }

    private let schedules = Atomic<UInt64>(0)
    private let successes = Atomic<UInt64>(0)

    /// Whether a hook is known not to implement a moment; of the first 64 hooks.
    func isIdle(_ moment: Moment, _ index: Int) -> Bool {
        let known =
            switch moment {
            case .schedule: schedules.load(ordering: .relaxed)
            case .success: successes.load(ordering: .relaxed)
            }
        return index < 64 && known >> UInt64(index) & 1 == 1
    }

    func note(_ moment: Moment, _ index: Int) {
        guard index < 64 else { return }
        switch moment {
        case .schedule: schedules.bitwiseOr(1 << UInt64(index), ordering: .relaxed)
        case .success: successes.bitwiseOr(1 << UInt64(index), ordering: .relaxed)
        }
    }
}

extension CallContext {
    /// Notes that a default implementation runs in the place of a moment that `type` does not implement.
    mutating func noteDefault(_ moment: IdleMoments.Moment, of type: any ServiceHook.Type) {
        defaultTaken = DefaultMoment(type: ObjectIdentifier(type), moment: moment)
    }

    /// Whether the moment that has just been called is one that the hook does not implement.
    ///
    /// By the type: a hook that hands its moments on to another one runs the default of that one's type, which says nothing of its
    /// own. And by the moment, since such a hook may throw after that, and what was noted then is found at another moment.
    mutating func takesDefault(_ moment: IdleMoments.Moment, of hook: any ServiceHook) -> Bool {
        guard let taken = defaultTaken else { return false }
        defaultTaken = nil
        return taken.moment == moment && taken.type == ObjectIdentifier(type(of: hook))
    }
}

/// A default implementation that ran: of which type, and in the place of which moment.
struct DefaultMoment: Sendable {
    let type: ObjectIdentifier
    let moment: IdleMoments.Moment
}
