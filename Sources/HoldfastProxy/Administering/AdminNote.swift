// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    package import Foundation
    package import HoldfastSemantics

    /// A file in a cache's directory that says where the process with the open directory accepts purges. Only the owner
    /// may enter the directory.
    ///
    /// It contains no secret. A file left by a crashed process is harmless: its process number must match the lock, and
    /// the listener accepts an order only with the identifier of its own start.
    package struct AdminNote: Codable, Sendable, Hashable {
        /// The name of the file.
        package static let fileName = "admin.json"
        /// The header field with the identifier of the process that a request is meant for.
        package static let field: FieldName = "Holdfast-Instance"

        /// The process number.
        package let process: Int32
        /// `http://127.0.0.1:9090`, or `unix:/path`.
        package let address: String
        /// The identifier of this start.
        package let instance: String
        /// The file whose first line is the token; nil if no token is required.
        package let tokenFile: String?

        package init(process: Int32, address: String, instance: String, tokenFile: String?) {
            self.process = process
            self.address = address
            self.instance = instance
            self.tokenFile = tokenFile
        }

        /// Creates a unique identifier for a start.
        package static func makeInstance() -> String { String(InspectorGuard.randomWord().prefix(32)) }

        /// The note in a directory; nil if there is no readable one.
        package static func read(in directory: URL) -> AdminNote? {
            guard let handle = try? FileHandle(forReadingFrom: directory.appending(path: fileName)) else { return nil }
            defer { try? handle.close() }
            guard let bytes = try? handle.read(upToCount: 65_536) else { return nil }
            return try? JSONDecoder().decode(AdminNote.self, from: bytes)
        }

        /// Writes the note, readable only by its owner; only the holder of the directory's lock may call this.
        package func write(in directory: URL) throws {
            let file = directory.appending(path: AdminNote.fileName)
            let new = directory.appending(path: AdminNote.fileName + ".tmp")
            try? FileManager.default.removeItem(at: new)
            let bytes = try JSONEncoder().encode(self)
            guard
                FileManager.default.createFile(
                    atPath: new.path,
                    contents: bytes,
                    attributes: [.posixPermissions: 0o600]
                )
            else { throw CocoaError(.fileWriteUnknown) }
            guard rename(new.path, file.path) == 0 else {
                throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
            }
        }

        /// Removes the note; only the holder of the directory's lock may call this.
        package static func remove(in directory: URL) {
            try? FileManager.default.removeItem(at: directory.appending(path: fileName))
        }
    }
#endif
