// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if XML
    internal import Foundation

    /// Converts a document to UTF-8 without a declaration, so that a parser cannot be told to read it as anything else.
    enum XMLText {
        /// The document's bytes in UTF-8.
        ///
        /// - Throws: `DecodingError` if its encoding is not UTF-8, US-ASCII, ISO-8859-1, Windows-1252 or UTF-16, or if its
        ///   bytes are not in that encoding.
        static func utf8(of data: Data) throws -> [UInt8] {
            let start = Array(data.prefix(4))
            if start.starts(with: [0xEF, 0xBB, 0xBF]) {
                return try withoutDeclaration(validated(Array(data.dropFirst(3))))
            }
            let isLittle = start.starts(with: [0xFF, 0xFE]) || start.starts(with: [0x3C, 0, 0x3F, 0])
            if isLittle || start.starts(with: [0xFE, 0xFF]) || start.starts(with: [0, 0x3C, 0, 0x3F]) {
                let marked = start.first == 0xFF || start.first == 0xFE
                return try withoutDeclaration(
                    converted(data.dropFirst(marked ? 2 : 0), encoding: isLittle ? .utf16LittleEndian : .utf16BigEndian)
                )
            }
            let bytes = Array(data)
            switch declaredEncoding(of: bytes) {
            case nil, "utf-8", "utf8", "us-ascii", "ascii": return try withoutDeclaration(validated(bytes))
            case "iso-8859-1", "latin1": return try withoutDeclaration(converted(data, encoding: .isoLatin1))
            case "windows-1252", "cp1252": return try withoutDeclaration(converted(data, encoding: .windowsCP1252))
            case let name?: throw refusal("Its encoding \(name.prefix(40)) is not supported. Request UTF-8.")
            }
        }

        static func refusal(_ reason: String) -> DecodingError {
            .dataCorrupted(DecodingError.Context(codingPath: [], debugDescription: "The XML was rejected. \(reason)"))
        }

        private static func validated(_ bytes: [UInt8]) throws -> [UInt8] {
            guard String(validating: bytes, as: UTF8.self) != nil else { throw refusal("It is not UTF-8.") }
            return bytes
        }

        private static func converted(_ data: Data, encoding: String.Encoding) throws -> [UInt8] {
            guard let text = String(data: data, encoding: encoding) else {
                throw refusal("Its bytes are not in its declared encoding.")
            }
            return Array(text.utf8)
        }

        /// The declaration's text (XML 1.0 §2.8); nil if there is none.
        private static func declaration(of bytes: [UInt8]) -> ArraySlice<UInt8>? {
            guard bytes.starts(with: Array("<?xml".utf8)), bytes.count > 5, bytes[5].isXMLSpace,
                let end = bytes.prefix(512).firstRange(of: Array("?>".utf8))
            else { return nil }
            return bytes[5..<end.lowerBound]
        }

        private static func declaredEncoding(of bytes: [UInt8]) -> String? {
            guard let declaration = declaration(of: bytes) else { return nil }
            let text = String(decoding: declaration, as: UTF8.self)
            guard let found = text.firstMatch(of: #/\sencoding\s*=\s*["']([^"']*)["']/#) else { return nil }
            return found.1.lowercased()
        }

        private static func withoutDeclaration(_ bytes: [UInt8]) -> [UInt8] {
            guard let declaration = declaration(of: bytes) else { return bytes }
            return Array(bytes[(declaration.endIndex + 2)...])
        }
    }

    extension UInt8 {
        /// White space (S in XML 1.0 §2.3).
        var isXMLSpace: Bool { self == 0x20 || self == 0x09 || self == 0x0A || self == 0x0D }
    }
#endif
