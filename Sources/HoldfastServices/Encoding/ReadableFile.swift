// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastStorage

/// An open file for reading, closed with its last reference. All its methods block: see ``BlockingWork``.
final class ReadableFile: Sendable {
    private let files = POSIXFileSystem()
    private let file: OpenFile

    init(_ path: String) throws {
        file = try files.open(path, .read)
    }

    deinit { files.close(file) }

    /// Its current size in bytes.
    func size() throws -> Int {
        try files.size(of: file)
    }

    /// Up to `count` bytes from `offset`; fewer at the end.
    func read(from offset: Int, count: Int) throws -> [UInt8] {
        try files.read(file, from: offset, count: count)
    }
}
