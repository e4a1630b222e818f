// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

/// The lower limit: one positional call on an open file, with nothing around it.
final class RawSubject: Subject {
    private let workload: Workload
    private let file: Int32
    private var places: [Int] = []
    private var end = 0

    init(_ setting: SubjectKind.Setting) throws {
        workload = setting.workload
        try FileManager.default.createDirectory(atPath: setting.directory, withIntermediateDirectories: true)
        file = open(setting.directory + "/raw", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        if file < 0 { throw CallFailure("raw", "open", errno) }
    }

    func run(_ steps: ArraySlice<Step>) throws {
        for step in steps {
            try step.isPut ? put(step.entry) : get(step.entry)
        }
    }

    private func put(_ entry: Int) throws {
        let count = workload.value(entry).withUnsafeBytes { pwrite(file, $0.baseAddress, $0.count, off_t(end)) }
        guard count == workload.valueLength else { throw CallFailure("raw", "pwrite", errno) }
        while places.count <= entry { places.append(0) }
        places[entry] = end
        end += count
    }

    private func get(_ entry: Int) throws {
        let place = places[entry]
        let bytes = [UInt8](unsafeUninitializedCapacity: workload.valueLength) { buffer, initialized in
            initialized = max(0, pread(file, buffer.baseAddress, buffer.count, off_t(place)))
        }
        guard workload.holdsValue(bytes, entry) else { throw WrongAnswer(subject: "raw", entry: entry) }
    }

    func close() {
        _ = Foundation.close(file)
    }
}
