// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
private import Synchronization

/// The files that one call wrote; only the one that its caller gets remains.
final class DownloadedFiles: Sendable {
    private struct State {
        var urls: [URL] = []
        var isSettled = false
    }

    private let directory: URL
    private let state = Mutex(State())

    init(in directory: URL) {
        self.directory = directory
    }

    /// Creates a file for this call; throws if the call is over.
    func makeFile() async throws -> DownloadFile {
        let file = try await DownloadFile.make(in: directory)
        let isLate = state.withLock { state in
            if !state.isSettled { state.urls.append(file.url) }
            return state.isSettled
        }
        // A call that ended at its deadline does not wait for work it had started.
        guard isLate else { return file }
        await file.remove()
        throw CancellationError()
    }

    /// Removes a file that a failed attempt left; the next attempt writes another one.
    func discard(_ file: DownloadFile) async {
        await file.remove()
        state.withLock { state in state.urls.removeAll { $0 == file.url } }
    }

    /// Ends the call: removes all files but the caller's, and any that would be created later.
    func settle(keeping kept: URL?) {
        let urls = state.withLock { state in
            defer { state.urls = [] }
            state.isSettled = true
            return state.urls
        }
        for url in urls where url != kept { try? FileManager.default.removeItem(at: url) }
    }
}
