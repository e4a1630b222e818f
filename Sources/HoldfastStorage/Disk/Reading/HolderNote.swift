// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if canImport(Darwin)
    internal import Darwin
#elseif canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#endif

/// What the file `lock` says of the process that took the lock last.
enum HolderNote {
    /// The number of that process; nil where none is noted or it lives no more.
    ///
    /// The lock itself is not tried: for as long as that took, no store could be opened.
    static func read(_ layout: StoreLayout, _ files: any FileSystem) -> Int32? {
        guard let file = try? files.openIfThere(layout.lock) else { return nil }
        defer { files.close(file) }
        guard let bytes = try? files.read(file, from: 0, count: 20), let number = number(in: bytes) else { return nil }
        return isAlive(number) ? number : nil
    }

    /// The number in the bytes of the file.
    static func number(in bytes: [UInt8]) -> Int32? {
        let digits = bytes.prefix { (48...57).contains($0) }
        guard let number = Int32(String(decoding: digits, as: UTF8.self)), number > 0 else { return nil }
        return number
    }

    private static func isAlive(_ process: Int32) -> Bool {
        kill(process, 0) == 0 || errno == EPERM
    }
}
