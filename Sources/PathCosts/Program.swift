// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

/// Runs the paths whose costs `.ci/path-costs` holds to their record; a line for each: name, turns, allocations of all turns.
///
/// Synchronous, so that all runs on one thread: callgrind counts the same each time, and does not survive the exit of the thread that an
/// asynchronous `main` leaves behind.
@main
enum Program {
    static func main() {
        let line = Line()
        // The first call of the C library's counters, of caches of the runtime and the like belongs to no path.
        for path in Path.controls { _ = path.measure(on: line) }
        let folder = NSTemporaryDirectory() + "path-costs-\(ProcessInfo.processInfo.processIdentifier)"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        do {
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        } catch {
            FileHandle.standardError.write(Data("path-costs: no folder for the disk store: \(error)\n".utf8))
            exit(1)
        }
        let disks = Path.disks(in: folder, on: line)
        for path in Path.controls + Path.judgements + Path.stores + disks + Path.calls(on: line) {
            print(path.name, path.turns, path.measure(on: line))
        }
    }
}
