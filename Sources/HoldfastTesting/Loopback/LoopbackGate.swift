// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

private import Synchronization

#if canImport(Darwin)
    private import Darwin
#elseif canImport(Musl)
    private import Musl
#else
    private import Glibc
#endif

/// A gate that a test holds: a scripted reply waits at it until ``open()``.
///
/// It is a pipe, so that a connection's thread can wait for the gate, for its peer and for the end of the server in one
/// `poll`. Opening closes the write end, which every waiter sees. A gate opens once and stays open.
public final class LoopbackGate: Sendable {
    private let readEnd: Int32
    private let writeEnd: Mutex<Int32?>
    private let arrivals = CountWatch()
    private let openings = CountWatch()

    /// A closed gate.
    public init() {
        var ends: (Int32, Int32) = (-1, -1)
        let outcome = withUnsafeMutableBytes(of: &ends) { pipe($0.bindMemory(to: Int32.self).baseAddress) }
        precondition(outcome == 0, "no pipe for a gate: errno \(errno)")
        readEnd = ends.0
        writeEnd = Mutex(ends.1)
        for end in [ends.0, ends.1] { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    }

    deinit {
        open()
        close(readEnd)
    }

    /// Lets everyone through, now and later. Idempotent, never blocks.
    public func open() {
        let end = writeEnd.withLock { end in
            defer { end = nil }
            return end
        }
        guard let end else { return }
        close(end)
        openings.increment()
    }

    /// Whether the gate is open.
    public var isOpen: Bool { writeEnd.withLock { $0 == nil } }

    /// Waits until `count` replies have come to this gate, whether they had to wait or not.
    ///
    /// - Throws: `CancellationError` when the task is cancelled.
    public func reached(by count: Int = 1) async throws {
        try await arrivals.wait(for: count)
    }

    /// Waits until the gate is open.
    ///
    /// - Throws: `CancellationError` when the task is cancelled.
    public func opened() async throws {
        try await openings.wait(for: 1)
    }

    /// Notes that a reply has come to this gate.
    package func arrive() {
        arrivals.increment()
    }

    /// Becomes readable (or hung up) when the gate opens.
    var descriptor: Int32 { readEnd }
}
