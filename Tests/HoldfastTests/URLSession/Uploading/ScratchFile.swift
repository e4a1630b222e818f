// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation

/// A file that is removed with its last reference.
final class ScratchFile: Sendable {
    let url = FileManager.default.temporaryDirectory.appendingPathComponent("holdfast-test-\(UUID().uuidString)")

    init(_ bytes: [UInt8]) throws {
        try Data(bytes).write(to: url)
    }

    /// A file of holes.
    init(length: Int) throws {
        try Data().write(to: url)
        try resize(to: length)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    func resize(to length: Int) throws {
        let handle = try FileHandle(forWritingTo: url)
        try handle.truncate(atOffset: UInt64(length))
        try handle.close()
    }
}
