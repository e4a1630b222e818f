// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Exchanges
internal import Foundation
internal import HoldfastStorage
internal import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// A dictionary under one lock, from the URL's text to a place in one file, and one read call for the body: the minimum that
/// any disk cache does.
final class RawFileSubject: Subject {
    let name = "raw"
    private let file: Int32
    private let length: Int
    private let offsets: Mutex<[String: Int]>

    init(path: String, count: Int, length: Int) throws {
        let resources = (0..<count).map { Resource($0, length: length) }
        try Data(resources.flatMap(\.body)).write(to: URL(fileURLWithPath: path))
        file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw WrongAnswer(subject: name) }
        self.length = length
        offsets = Mutex(Dictionary(uniqueKeysWithValues: resources.map { ($0.url, $0.number * length) }))
    }

    deinit {
        _ = Foundation.close(file)
    }

    func takesPart(in hitCase: HitCase) -> Bool { hitCase.tier == .disk }

    func ask(_ asking: Asking, _ places: Range<Int>, _ hitCase: HitCase) async throws -> Int {
        var right = 0
        for place in places {
            let number = asking.number(place)
            guard let url = asking.requests[number].url?.absoluteString, let offset = offsets.withLock({ $0[url] })
            else { continue }
            let resource = asking.resources[number]
            if hitCase.asksData {
                if let data = data(at: offset), resource.holds(data) { right += 1 }
            } else if resource.holds(bytes(at: offset)) {
                right += 1
            }
        }
        return right
    }

    private func bytes(at offset: Int) -> ByteChunk {
        ByteChunk(
            [UInt8](unsafeUninitializedCapacity: length) { buffer, count in
                count = max(0, pread(file, buffer.baseAddress, length, off_t(offset)))
            }
        )
    }

    private func data(at offset: Int) -> Data? {
        guard let block = malloc(length) else { return nil }
        let count = max(0, pread(file, block, length, off_t(offset)))
        return Data(bytesNoCopy: block, count: count, deallocator: .free)
    }
}
