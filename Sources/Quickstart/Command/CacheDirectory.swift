// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
internal import HoldfastCommand
internal import HoldfastSemantics
internal import HoldfastStorage

/// Where the disk cache of the last two runs lies, and who removes it.
struct CacheDirectory: Sendable, Equatable {
    /// The store's own directory.
    let path: String
    /// Whether ``removeIfTemporary()`` takes it away.
    let isTemporary: Bool

    /// A directory for this run of the program.
    ///
    /// - Parameter parent: nil for a temporary directory; else its sub-directory `holdfast-quickstart` is used, and nothing
    ///   beside it is touched.
    /// - Throws: a ``CommandFailure`` of status 1 that names the directory.
    init(in parent: String?) throws(CommandFailure) {
        if let parent {
            path = URL(fileURLWithPath: parent).appendingPathComponent("holdfast-quickstart").path
            isTemporary = false
        } else {
            let name = "holdfast-quickstart-\(UUID().uuidString)"
            path = FileManager.default.temporaryDirectory.appendingPathComponent(name).path
            isTemporary = true
        }
        do {
            try FileManager.default.createDirectory(
                atPath: path,
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700]
            )
        } catch {
            throw .unusable(directory: path, CacheDirectory.plain(error))
        }
    }

    /// Opens the store in the directory.
    ///
    /// - Throws: a ``CommandFailure`` of status 1 that names the directory.
    func openStore(capacity: Int, clock: any HoldfastClock) async throws -> any CacheStore {
        do {
            let now = StoreInstant(milliseconds: clock.timestamp.millisecondsSinceEpoch)
            return try await DiskStore.open(directory: path, capacity: capacity, now: now)
        } catch {
            throw CommandFailure.unusable(directory: path, error)
        }
    }

    /// Removes a temporary directory with all it holds; leaves any other alone.
    func removeIfTemporary() {
        if isTemporary { try? FileManager.default.removeItem(atPath: path) }
    }

    /// The system's own words where Foundation passes them on: its other texts only say that something went wrong.
    private static func plain(_ error: any Error) -> PlainReason {
        let inner = (error as? CocoaError)?.underlying ?? error
        guard let system = inner as? POSIXError else { return PlainReason(description: error.localizedDescription) }
        return PlainReason(description: String(cString: strerror(system.code.rawValue)))
    }

    private struct PlainReason: Error, CustomStringConvertible {
        let description: String
    }
}
