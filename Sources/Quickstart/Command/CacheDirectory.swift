// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

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

    /// Removes a temporary directory with all it holds; leaves any other alone.
    func removeIfTemporary() {
        if isTemporary { try? FileManager.default.removeItem(atPath: path) }
    }

    /// Foundation's errors print over several lines; the reason is in the innermost of them.
    private static func plain(_ error: any Error) -> PlainReason {
        let error = error as NSError
        let inner = error.userInfo[NSUnderlyingErrorKey] as? NSError ?? error
        guard inner.domain == NSPOSIXErrorDomain else { return PlainReason(description: error.localizedDescription) }
        return PlainReason(description: String(cString: strerror(Int32(clamping: inner.code))))
    }

    private struct PlainReason: Error, CustomStringConvertible {
        let description: String
    }
}
