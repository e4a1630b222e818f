// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastStorage
import HoldfastTesting

/// A device that is soon full.
enum SmallDevice: Sendable {
    /// A real one, in memory, mounted on a directory of its own.
    case mounted(ScratchDirectory, size: Int)
    /// A simulated one.
    case simulated(SimulatedFileSystem)

    /// A device of this size: a real one where this process may mount one, else a simulated one.
    static func real(size: Int) throws -> SmallDevice {
        #if os(Linux)
            let scratch = try ScratchDirectory()
            let options = "size=\(size),mode=0700"
            if mount("tmpfs", scratch.path, "tmpfs", UInt(MS_NOSUID | MS_NODEV), options) == 0 {
                return .mounted(scratch, size: size)
            }
            scratch.remove()
        #endif
        return simulated(size: size)
    }

    static func simulated(size: Int) -> SmallDevice {
        .simulated(SimulatedFileSystem(capacity: size, remembersUnsynced: false))
    }

    /// What it is, for the report of a run.
    var name: String {
        switch self {
        case .mounted(_, let size): "a tmpfs of \(size >> 10) KiB"
        case .simulated(let files): "SimulatedFileSystem of \((files.capacity ?? 0) >> 10) KiB"
        }
    }

    var files: any FileSystem {
        switch self {
        case .mounted: POSIXFileSystem()
        case .simulated(let files): files
        }
    }

    /// A directory on it that is there.
    var root: String {
        switch self {
        case .mounted(let scratch, _): scratch.path
        case .simulated: ""
        }
    }

    /// Bytes used now, in whole blocks.
    func usedBytes() -> Int {
        switch self {
        case .mounted(let scratch, _):
            var status = statvfs()
            guard statvfs(scratch.path, &status) == 0 else { return .max }
            return Int(status.f_blocks - status.f_bfree) * Int(status.f_frsize)
        case .simulated(let files): return files.usedBytes
        }
    }

    func remove() {
        if case .mounted(let scratch, _) = self {
            #if os(Linux)
                umount2(scratch.path, Int32(MNT_DETACH))
            #endif
            scratch.remove()
        }
    }
}
