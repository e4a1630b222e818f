// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import CPathCosts
internal import Dispatch
internal import Foundation
internal import Synchronization

/// Runs the paths whose costs `.ci/path-costs` compares with the record, or only those that are named; prints a line for each:
/// name, turns, allocations of all turns. With `--once` first, one turn of each is counted: `.ci/walks` lists what it enters.
///
/// Synchronous, so that everything runs on one thread: callgrind then counts the same each time, and it does not survive the
/// exit of the thread that an asynchronous `main` leaves behind.
@main
enum Program {
    static func main() {
        let line = Line()
        // One-time costs of the first call, such as those of the C library's counters and of the runtime's caches, belong to no
        // path.
        for path in Path.controls { _ = path.measure(on: line) }
        let folder = NSTemporaryDirectory() + "path-costs-\(ProcessInfo.processInfo.processIdentifier)"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        do {
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        } catch {
            FileHandle.standardError.write(
                Data("path-costs: cannot create a folder for the disk store: \(error)\n".utf8)
            )
            exit(1)
        }
        let disks = Path.disks(in: folder, on: line)
        var named = CommandLine.arguments.dropFirst()
        let once = named.first == "--once"
        if once { named.removeFirst() }
        let paths = Path.controls + Path.decisions + Path.stores + disks + Path.calls(on: line)
        for path in paths where named.isEmpty || named.contains(path.name) {
            print(path.name, path.turns, path.measure(once ? 1 : path.turns, on: line))
            // What is released at the end belongs to no path.
            if once { exit(0) }
        }
    }
}

/// One path whose cost is checked: a number of equal turns.
struct Path: Sendable {
    let name: String
    let turns: Int
    /// Makes the turns, and ends the program with a message if one fails.
    let make: @Sendable (_ turns: Int, _ line: Line) -> Void

    /// A path without suspensions.
    init(_ name: String, turns: Int = 500, turn: @escaping @Sendable (Int) -> Bool) {
        self.name = name
        self.turns = turns
        make = { turns, _ in
            for index in 0..<turns where !turn(index) { Path.fail(name) }
        }
    }

    /// A path of calls.
    init(_ name: String, turns: Int = 500, calling turn: @escaping @Sendable (Int) async throws -> Bool) {
        self.name = name
        self.turns = turns
        make = { turns, line in
            line.run {
                for index in 0..<turns {
                    guard (try? await turn(index)) ?? false else { Path.fail(name) }
                }
            }
        }
    }

    /// Makes all turns unobserved, and then those that are counted.
    ///
    /// - Parameter counted: how many are counted; nil: all.
    /// - Returns: the allocations of all counted turns together; negative if they cannot be counted.
    func measure(_ counted: Int? = nil, on line: Line) -> Int {
        make(turns, line)
        let state = Measured { make(counted ?? turns, line) }
        let before = path_costs_allocations()
        path_costs_measured(
            { state in
                if let state { Unmanaged<Measured>.fromOpaque(state).takeUnretainedValue().body() }
            },
            Unmanaged.passUnretained(state).toOpaque()
        )
        return before < 0 ? -1 : path_costs_allocations() - before
    }

    private static func fail(_ name: String) -> Never {
        FileHandle.standardError.write(Data("path-costs: a turn of \(name) failed\n".utf8))
        exit(1)
    }

    private final class Measured {
        let body: () -> Void

        init(_ body: @escaping () -> Void) {
            self.body = body
        }
    }
}

/// Runs tasks on the thread that waits for them, one job after the other, so that all their costs are counted and are the same
/// each time.
final class Line: TaskExecutor {
    private let jobs = Mutex<[UnownedJob]>([])
    /// Counts the jobs, and the end of a run; a thread that polled would be counted too.
    private let arrivals = DispatchSemaphore(value: 0)

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLock { $0.append(job) }
        arrivals.signal()
    }

    /// Runs an operation and everything that it starts.
    func run(_ operation: @escaping @Sendable () async -> Void) {
        let ended = Ended()
        Task(executorPreference: self) {
            await operation()
            ended.isSet.store(true, ordering: .releasing)
        }
        while true {
            arrivals.wait()
            let next = jobs.withLock { $0.isEmpty ? nil : $0.removeFirst() }
            next?.runSynchronously(on: asUnownedTaskExecutor())
            if ended.isSet.load(ordering: .acquiring) { return }
        }
    }

    private final class Ended: Sendable {
        let isSet = Atomic(false)
    }
}
