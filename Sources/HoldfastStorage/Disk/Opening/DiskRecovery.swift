// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Reads what a directory holds and builds the state of a store from it.
///
/// Whatever does not hold its checks is removed; whatever nobody names is removed, too. Where the system refuses to show
/// a file, opening fails rather than that good entries are thrown away; only a file that cannot be read any more goes.
struct DiskRecovery: Sendable {
    let layout: DiskLayout
    let files: any FileSystem

    private struct Found {
        let number: UInt64
        let size: Int
        let key: StoreKey
        var records: [KeyFile.Record]
        var newest: StoredEntry.Version { records.first?.entry.version ?? .init(number: 0) }
    }

    /// Fills `state`, which may exceed its capacity afterwards.
    func fill(_ state: inout DiskState) throws(StoreError) {
        do throws(FileSystemError) {
            let bodies = try bodySizes()
            var kept: [StoreKey: Found] = [:]
            for found in try keyFiles(bodies, &state) {
                // Two files of one key are left only where a removal failed; the older one is what had to go.
                if let other = kept[found.key] {
                    let (newer, older) = other.newest < found.newest ? (found, other) : (other, found)
                    kept[found.key] = newer
                    remove(layout.keyFile(older.number), size: older.size, &state)
                } else {
                    kept[found.key] = found
                }
            }
            var named: Set<UInt64> = []
            for found in kept.values.sorted(by: { $0.newest < $1.newest }) {
                // A body belongs to one record; a second claim on it cannot be right.
                let records = found.records.filter { $0.body.file == 0 || named.insert($0.body.file).inserted }
                _ = state.install(found.key, records, file: found.number, size: found.size)
                if records.isEmpty { remove(layout.keyFile(found.number), size: found.size, &state) }
            }
            for (number, size) in bodies where !named.contains(number) {
                remove(layout.bodyFile(number), size: size, &state)
            }
        } catch {
            throw StoreError(disk: error)
        }
    }

    private func bodySizes() throws(FileSystemError) -> [UInt64: Int] {
        var sizes: [UInt64: Int] = [:]
        for name in try files.list(layout.bodies) {
            guard let number = FileNumber.number(in: name, suffix: DiskLayout.bodySuffix) else { continue }
            guard let attributes = try files.attributesIfThere(layout.bodyFile(number)) else { continue }
            if attributes.kind == .file { sizes[number] = attributes.size }
        }
        return sizes
    }

    private func keyFiles(_ bodies: [UInt64: Int], _ state: inout DiskState) throws(FileSystemError) -> [Found] {
        var all: [Found] = []
        for name in try files.list(layout.keys) {
            let path = "\(layout.keys)/\(name)"
            guard let attributes = try files.attributesIfThere(path), attributes.kind == .file else { continue }
            guard let number = FileNumber.number(in: name, suffix: DiskLayout.keySuffix) else {
                if FileNumber.number(in: name, suffix: DiskLayout.temporarySuffix) != nil {
                    remove(path, size: attributes.size, &state)
                }
                continue
            }
            if var found = try read(path, number: number) {
                let count = found.records.count
                found.records.removeAll { $0.body.file != 0 && bodies[$0.body.file] != $0.entry.bodyLength }
                state.counts.entriesCorrupt &+= count - found.records.count
                if !found.records.isEmpty {
                    all.append(found)
                    continue
                }
            } else {
                state.counts.entriesCorrupt &+= 1
            }
            remove(path, size: attributes.size, &state)
        }
        return all
    }

    private func read(_ path: String, number: UInt64) throws(FileSystemError) -> Found? {
        let file = try files.open(path, .read)
        defer { files.close(file) }
        let size = try files.size(of: file)
        guard size <= KeyFile.maximumSize else { return nil }
        let bytes: [UInt8]
        do throws(FileSystemError) {
            bytes = try files.read(file, from: 0, count: size)
        } catch {
            if error.errno == SystemNumber.damaged { return nil }
            throw error
        }
        return KeyFile.decode(bytes, file: number).map {
            Found(number: number, size: size, key: $0.key, records: $0.records)
        }
    }

    /// Removes a file that nobody needs; one that stays is counted and tried again later.
    private func remove(_ path: String, size: Int, _ state: inout DiskState) {
        do {
            try files.removeIfThere(path)
        } catch {
            state.keep(LeavingFile(path: path, cost: DiskState.blocks(size)))
        }
    }
}
