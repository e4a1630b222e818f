// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The segment files that one step of a reader opened; all are closed when it ends.
///
/// None is held for longer: what a store unlinks or uses again while somebody has it open keeps its space.
final class SegmentHandles {
    private static let most = 64

    private let layout: StoreLayout
    private let files: any FileSystem
    private var open: [UInt64: OpenFile] = [:]

    init(_ layout: StoreLayout, _ files: any FileSystem) {
        self.layout = layout
        self.files = files
    }

    deinit {
        for file in open.values { files.close(file) }
    }

    /// Bytes of a segment's file; nil when there is no such file any more.
    func read(_ number: UInt64, from offset: Int, count: Int) throws(FileSystemError) -> [UInt8]? {
        guard let file = try file(number) else { return nil }
        return try files.read(file, from: offset, count: count)
    }

    private func file(_ number: UInt64) throws(FileSystemError) -> OpenFile? {
        if let file = open[number] { return file }
        guard let file = try files.openIfThere(layout.segment(number)) else { return nil }
        if open.count >= Self.most {
            for file in open.values { files.close(file) }
            open = [:]
        }
        open[number] = file
        return file
    }
}
