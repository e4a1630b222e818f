// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

/// One file per entry: written under a temporary name and renamed, opened and closed for each get.
final class FilesSubject: Subject {
    private let workload: Workload
    private let directory: String
    private var serial = 0

    init(_ setting: SubjectKind.Setting) throws {
        workload = setting.workload
        directory = setting.directory
        try FileManager.default.createDirectory(atPath: setting.directory, withIntermediateDirectories: true)
    }

    func run(_ steps: ArraySlice<Step>) throws {
        for step in steps {
            try step.isPut ? put(step.entry) : get(step.entry)
        }
    }

    private func put(_ entry: Int) throws {
        serial += 1
        let temporary = "\(directory)/\(serial).tmp"
        let file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw CallFailure("files", "open", errno) }
        let count = workload.value(entry).withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
        _ = Foundation.close(file)
        guard count == workload.valueLength, rename(temporary, "\(directory)/\(entry)") == 0 else {
            throw CallFailure("files", "write and rename", errno)
        }
    }

    private func get(_ entry: Int) throws {
        let file = open("\(directory)/\(entry)", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw WrongAnswer(subject: "files", entry: entry) }
        let bytes = [UInt8](unsafeUninitializedCapacity: workload.valueLength) { buffer, initialized in
            initialized = max(0, read(file, buffer.baseAddress, buffer.count))
        }
        _ = Foundation.close(file)
        guard workload.holdsValue(bytes, entry) else { throw WrongAnswer(subject: "files", entry: entry) }
    }

    func close() {}
}
