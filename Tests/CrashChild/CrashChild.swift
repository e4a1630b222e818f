// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage
internal import HoldfastTesting

#if canImport(Darwin)
    internal import Darwin
#elseif canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#endif

/// A process that works on a store until it is killed; the crash tests start it.
///
///     CrashChild run DIRECTORY CAPACITY SEED ROUND      works, surveying first
///     CrashChild hold DIRECTORY CAPACITY                 opens the store and waits
///
/// It ends by itself when nobody reads its log any more (`SIGPIPE`), or after two minutes (`SIGALRM`).
@main
struct CrashChild {
    static func main() async {
        alarm(120)
        let arguments = CommandLine.arguments
        let log = CrashLog { text in
            var text = text
            // One call a line: lines are far shorter than what a pipe takes as a whole.
            text.withUTF8 { bytes in _ = write(STDOUT_FILENO, bytes.baseAddress, bytes.count) }
        }
        guard arguments.count >= 4, let capacity = Int(arguments[3]) else {
            log.note(.wrong("usage"))
            exit(64)
        }
        if arguments[1] == "run", arguments.count == 6, let seed = UInt64(arguments[4]),
            let round = UInt64(arguments[5])
        {
            await run(arguments[2], capacity, seed: seed, round: round, log)
        } else {
            let store = await open(arguments[2], capacity, log)
            var byte: UInt8 = 0
            // Until the parent closes the other end, or kills.
            while read(STDIN_FILENO, &byte, 1) > 0 {}
            await store.close()
        }
    }

    private static func open(_ directory: String, _ capacity: Int, _ log: CrashLog) async -> DiskStore {
        do {
            let now = StoreInstant(milliseconds: 1)
            let store = try await DiskStore.open(directory: directory, capacity: capacity, now: now)
            log.note(.opened)
            return store
        } catch {
            log.note(.wrong("open: \(error.code)"))
            exit(1)
        }
    }

    private static func run(
        _ directory: String,
        _ capacity: Int,
        seed: UInt64,
        round: UInt64,
        _ log: CrashLog
    ) async {
        var generator = SeededGenerator(seed: seed)
        var store = await open(directory, capacity, log)
        for line in await CrashSurvey.lines(of: store, now: StoreInstant(milliseconds: 1)) { log.note(line) }
        // Room for a million stamps a worker and turn, a thousand turns a round.
        var firstStamp = round << 40
        while true {
            let steps = Int.random(in: 10...60, using: &generator)
            await withTaskGroup(of: Void.self) { group in
                for number in 0..<CrashIdentity.workers {
                    var worker = CrashWorker(
                        number: number,
                        store: store,
                        log: log,
                        seed: generator.next(),
                        firstStamp: firstStamp
                    )
                    firstStamp += 1 << 20
                    group.addTask {
                        for _ in 0..<steps { await worker.step() }
                    }
                }
            }
            guard Int.random(in: 0..<3, using: &generator) == 0 else { continue }
            let closing = store
            await log.run(.close) { () throws(StoreError) in
                await closing.close()
                return .ok
            }
            store = await open(directory, capacity, log)
        }
    }
}
