// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The Cache-Control field of a request or a response, read leniently and written correctly (RFC 9111 §5.2).
///
/// Names are folded to lower case, unknown directives are kept, junk between commas is skipped. Where a value is
/// malformed or contradicts another one the reading that reuses less wins (RFC 9111 §4.2.1).
public struct CacheControl: Sendable, Hashable, CustomStringConvertible {
    /// One directive.
    public struct Directive: Sendable, Hashable {
        /// The name in lower case.
        public let name: String

        /// The argument with quotes and escapes undone; nil when there is none.
        public let argument: String?

        /// Creates a directive; the name is folded to lower case.
        public init(name: String, argument: String? = nil) {
            self.name = name.loweringASCII()
            self.argument = argument
        }
    }

    /// The directives in the order they came, duplicates included.
    public private(set) var directives: [Directive]

    /// Creates a field without directives.
    public init() {
        directives = []
    }

    /// Creates a field from directives that another field has given (RFC 9213 §2.1).
    package init(directives: [Directive]) {
        self.directives = directives
    }

    /// Reads all Cache-Control lines of a message.
    public init(_ fields: HeaderFields) {
        directives = []
        for line in fields where line.name == .cacheControl {
            parse(line.value)
        }
    }

    /// Reads the Cache-Control of a request, where `Pragma: no-cache` counts if the field is absent (RFC 9111 §5.4).
    ///
    /// - Parameter request: the request's fields.
    public init(request: HeaderFields) {
        self.init(request)
        guard !request.contains(.cacheControl), let pragma = request[.pragma] else { return }
        let members = FieldScanner.members(of: pragma)
        if members.contains(where: { $0.loweringASCII() == "no-cache" }) {
            directives.append(Directive(name: "no-cache"))
        }
    }

    /// Reads one field value; linear time.
    public init(parsing value: String) {
        directives = []
        parse(value)
    }

    /// Sets a directive, in the place of the first one with that name; further ones are removed.
    ///
    /// - Parameters:
    ///   - name: the directive's name; nothing happens when it is no token, since it could not be written.
    ///   - argument: its argument, or nil for none; quoted on writing where that is needed.
    public mutating func set(_ name: String, _ argument: String? = nil) {
        guard !name.isEmpty, name.utf8.allSatisfy(\.isTokenCharacter) else { return }
        let directive = Directive(name: name, argument: argument)
        guard let first = directives.firstIndex(where: { $0.name == directive.name }) else {
            return directives.append(directive)
        }
        let tail = directives[(first + 1)...].filter { $0.name != directive.name }
        directives = directives[..<first] + [directive] + tail
    }

    /// Removes every directive with this name.
    public mutating func remove(_ name: String) {
        let folded = name.loweringASCII()
        directives.removeAll { $0.name == folded }
    }

    /// Whether a directive with this name stands in the field, with an argument or without.
    ///
    /// - Parameter name: the name in any letter case.
    public func contains(_ name: String) -> Bool {
        let folded = name.loweringASCII()
        return directives.contains { $0.name == folded }
    }

    /// The field value: tokens bare, everything else quoted, field-name lists always quoted (RFC 9111 §5.2.2.4).
    public var description: String {
        directives.map(CacheControl.text).joined(separator: ", ")
    }

    private static func text(of directive: Directive) -> String {
        guard let argument = directive.argument else { return directive.name }
        let takesFieldNames = directive.name == "no-cache" || directive.name == "private"
        if !takesFieldNames, !argument.isEmpty, argument.utf8.allSatisfy(\.isTokenCharacter) {
            return "\(directive.name)=\(argument)"
        }
        var quoted = ""
        for scalar in argument.unicodeScalars {
            if scalar == "\"" || scalar == "\\" { quoted.unicodeScalars.append("\\") }
            quoted.unicodeScalars.append(scalar)
        }
        return "\(directive.name)=\"\(quoted)\""
    }

    private mutating func parse(_ value: String) {
        var scanner = FieldScanner(value)
        while !scanner.isAtEnd {
            scanner.skipWhitespace()
            guard let name = scanner.token() else {
                _ = scanner.text(upTo: UInt8(ascii: ","))
                continue
            }
            guard scanner.consume(UInt8(ascii: "=")) else {
                // A directive followed by junk counts all the same: "no-store x" must not turn into permission. Its
                // argument is empty then, which no directive that grants anything may have.
                let junk = scanner.text(upTo: UInt8(ascii: ","))
                directives.append(Directive(name: name, argument: junk.isEmpty ? nil : ""))
                continue
            }
            // White space around "=" and text behind a closing quote leave an argument that no number can have.
            let isSpaced = scanner.peek?.isOptionalWhitespace ?? false
            let quoted = scanner.quotedString()
            let rest = scanner.text(upTo: UInt8(ascii: ","))
            let argument = quoted.map { rest.isEmpty ? $0 : "\"\($0)\"\(rest)" } ?? (isSpaced ? "" : rest)
            directives.append(Directive(name: name, argument: argument))
        }
    }
}
