// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast
private import Synchronization

/// The files that one call wrote: of all of them, only the one its caller gets outlives it.
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

    /// A file for this call; none where the call is over.
    func makeFile() async throws -> DownloadFile {
        let file = try await DownloadFile.make(in: directory)
        let isLate = state.withLock { state in
            if !state.isSettled { state.urls.append(file.url) }
            return state.isSettled
        }
        // A call that ended at its deadline does not wait for what it had begun.
        guard isLate else { return file }
        await file.remove()
        throw CancellationError()
    }

    /// Removes a file that an attempt began and could not end: a further attempt writes another one.
    func discard(_ file: DownloadFile) async {
        await file.remove()
        state.withLock { state in state.urls.removeAll { $0 == file.url } }
    }

    /// Ends the call: removes all files but the caller's, and any that would come later.
    func settle(keeping kept: URL?) {
        let urls = state.withLock { state in
            defer { state.urls = [] }
            state.isSettled = true
            return state.urls
        }
        for url in urls where url != kept { try? FileManager.default.removeItem(at: url) }
    }
}
