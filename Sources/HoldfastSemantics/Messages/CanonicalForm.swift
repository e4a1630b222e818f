// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The canonical form of a target URI, built in one pass over its bytes (RFC 3986 §6.2.2, §6.2.3).
struct CanonicalForm {
    private(set) var bytes: [UInt8] = []
    private(set) var userinfo: String?
    private(set) var layout = TargetURI.Layout(schemeEnd: 0, hostEnd: 0, authorityEnd: 0, pathEnd: 0, port: nil)

    /// The layout of a text that is already canonical and has no userinfo, port or IP literal; nil for all others, which need
    /// ``make(_:)``.
    ///
    /// One pass without allocation: the text of most requests is canonical, since programs wrote it.
    static func layout(ofCanonical text: UnsafeBufferPointer<UInt8>) -> TargetURI.Layout? {
        let schemeEnd: Int
        if text.starts(with: "https://".utf8) {
            schemeEnd = 5
        } else if text.starts(with: "http://".utf8) {
            schemeEnd = 4
        } else {
            return nil
        }
        var index = schemeEnd + 3
        let host = index
        while index < text.count, text[index] != UInt8(ascii: "/") {
            let byte = text[index]
            guard URICharacters.hostCharacters.contains(byte), !byte.isUpperCaseLetter else { return nil }
            index += 1
        }
        guard index > host, index < text.count else { return nil }
        let authorityEnd = index
        var previous: UInt8 = 0
        while index < text.count, text[index] != UInt8(ascii: "?") {
            let byte = text[index]
            // A segment that begins with a dot may be a dot segment.
            guard URICharacters.pathCharacters.contains(byte),
                byte != UInt8(ascii: ".") || previous != UInt8(ascii: "/")
            else { return nil }
            previous = byte
            index += 1
        }
        let pathEnd = index
        if index < text.count {
            guard text[(index + 1)...].allSatisfy(URICharacters.queryCharacters.contains) else { return nil }
        }
        return TargetURI.Layout(
            schemeEnd: schemeEnd,
            hostEnd: authorityEnd,
            authorityEnd: authorityEnd,
            pathEnd: pathEnd,
            port: nil
        )
    }

    static func make(_ text: [UInt8]) throws(TargetURI.Rejection) -> CanonicalForm {
        let parts = URIReference(bytes: text)
        guard let scheme = parts.scheme else {
            throw TargetURI.Rejection(
                .notAbsolute,
                message: "The URI has no scheme; write it out, as in https://host/path"
            )
        }
        let isSecure = scheme.elementsEqual("https".utf8) { $0.lowerCased == $1 }
        guard isSecure || scheme.elementsEqual("http".utf8, by: { $0.lowerCased == $1 }) else {
            throw TargetURI.Rejection(.scheme, message: "Only http and https URIs can be sent and cached")
        }
        guard let authority = parts.authority else {
            throw TargetURI.Rejection(
                .noAuthority,
                message: "The URI has no host; write // and a host after the scheme"
            )
        }
        var form = CanonicalForm()
        form.bytes.reserveCapacity(text.count + 1)
        form.bytes += isSecure ? "https".utf8 : "http".utf8
        form.layout.schemeEnd = form.bytes.count
        form.bytes += "://".utf8
        try form.append(authority: authority, defaultPort: isSecure ? 443 : 80)
        form.layout.authorityEnd = form.bytes.count
        try form.append(path: parts.path)
        form.layout.pathEnd = form.bytes.count
        if let query = parts.query {
            form.bytes.append(UInt8(ascii: "?"))
            try form.append(query, allowing: .queryCharacters)
        }
        if let fragment = parts.fragment {
            let kept = form.bytes.count
            try form.append(fragment, allowing: .queryCharacters)
            form.bytes.removeLast(form.bytes.count - kept)
        }
        return form
    }

    private mutating func append(
        authority: ArraySlice<UInt8>,
        defaultPort: Int
    ) throws(TargetURI.Rejection) {
        var hostAndPort = authority
        if let at = authority.lastIndex(of: UInt8(ascii: "@")) {
            let credentials = authority[..<at]
            let kept = bytes.count
            try append(credentials, allowing: .userinfoCharacters)
            bytes.removeLast(bytes.count - kept)
            userinfo = credentials.isEmpty ? nil : String(decoding: credentials, as: UTF8.self)
            hostAndPort = authority[(at + 1)...]
        }
        var host = hostAndPort
        var port: ArraySlice<UInt8> = []
        if hostAndPort.first == UInt8(ascii: "[") {
            guard let close = hostAndPort.firstIndex(of: UInt8(ascii: "]")) else {
                throw TargetURI.Rejection(.character, message: "The IP literal is not closed; write ] after it")
            }
            host = hostAndPort[...close]
            port = hostAndPort[(close + 1)...]
            guard port.isEmpty || port.first == UInt8(ascii: ":") else { throw .character(port.first) }
            port = port.dropFirst()
        } else if let colon = hostAndPort.firstIndex(of: UInt8(ascii: ":")) {
            host = hostAndPort[..<colon]
            port = hostAndPort[(colon + 1)...]
        }
        guard !host.isEmpty else {
            throw TargetURI.Rejection(.emptyHost, message: "The host is empty; write one after //")
        }
        try append(host: host)
        layout.hostEnd = bytes.count
        try append(port: port, defaultPort: defaultPort)
    }

    private mutating func append(host: ArraySlice<UInt8>) throws(TargetURI.Rejection) {
        guard host.first == UInt8(ascii: "[") else {
            return try append(host, allowing: .hostCharacters, foldingCase: true)
        }
        guard IPLiteral.isValid(host.dropFirst().dropLast()) else {
            throw TargetURI.Rejection(
                .character,
                message: "The text in brackets is not an IPv6 address; check the host"
            )
        }
        bytes += host.lazy.map(\.lowerCased)
    }

    private mutating func append(port: ArraySlice<UInt8>, defaultPort: Int) throws(TargetURI.Rejection) {
        guard !port.isEmpty else { return }
        guard let number = FieldScanner.number(port, limit: 65_536), number <= 65_535 else {
            throw TargetURI.Rejection(
                .port,
                message: "The port is not a number from 0 to 65535; correct it or leave it out"
            )
        }
        guard Int(number) != defaultPort else { return }
        layout.port = Int(number)
        bytes.append(UInt8(ascii: ":"))
        bytes += String(number).utf8
    }

    /// Decodes before it removes dot segments, so that `%2e%2e` counts as `..` (RFC 3986 §6.2.2.3).
    private mutating func append(path: ArraySlice<UInt8>) throws(TargetURI.Rejection) {
        let start = bytes.count
        guard !path.isEmpty else { return bytes.append(UInt8(ascii: "/")) }
        try append(path, allowing: .pathCharacters)
        bytes.removeDotSegments(from: start)
    }

    private mutating func append(
        _ part: ArraySlice<UInt8>,
        allowing allowed: URICharacters,
        foldingCase: Bool = false
    ) throws(TargetURI.Rejection) {
        var index = part.startIndex
        while index < part.endIndex {
            let byte = part[index]
            if byte == UInt8(ascii: "%") {
                guard index + 2 < part.endIndex, let high = part[index + 1].hexValue,
                    let low = part[index + 2].hexValue
                else {
                    throw TargetURI.Rejection(
                        .percent,
                        message: "A % must be followed by two hexadecimal digits; write %25"
                    )
                }
                let decoded = high << 4 | low
                if URICharacters.unreserved.contains(decoded) {
                    bytes.append(foldingCase ? decoded.lowerCased : decoded)
                } else {
                    bytes += [byte, part[index + 1].upperCased, part[index + 2].upperCased]
                }
                index += 3
            } else {
                guard allowed.contains(byte) else { throw .character(byte) }
                bytes.append(foldingCase ? byte.lowerCased : byte)
                index += 1
            }
        }
    }
}

extension TargetURI.Rejection {
    static func character(_ byte: UInt8?) -> TargetURI.Rejection {
        let hex = String(byte ?? 0, radix: 16, uppercase: true)
        return TargetURI.Rejection(
            .character,
            message: "A URI must not contain the byte 0x\(hex) there; percent-encode it"
        )
    }
}

extension [UInt8] {
    /// RFC 3986 §5.2.4 for the path from `start` to the end; it begins with a slash.
    mutating func removeDotSegments(from start: Int) {
        let slash = UInt8(ascii: "/")
        let dot = UInt8(ascii: ".")
        var write = start
        var read = start
        while read < count {
            var end = read + 1
            while end < count, self[end] != slash { end += 1 }
            let length = end - read - 1
            let isOneDot = length == 1 && self[read + 1] == dot
            let isTwoDots = length == 2 && self[read + 1] == dot && self[read + 2] == dot
            if isTwoDots {
                while write > start {
                    write -= 1
                    if self[write] == slash { break }
                }
            }
            if isOneDot || isTwoDots {
                if end == count {
                    self[write] = slash
                    write += 1
                }
            } else {
                for index in read..<end {
                    self[write] = self[index]
                    write += 1
                }
            }
            read = end
        }
        removeLast(count - write)
    }
}

/// A set of ASCII characters as 128 bits: the character classes of RFC 3986.
struct URICharacters: Sendable {
    private let low: UInt64
    private let high: UInt64

    private init(low: UInt64, high: UInt64) {
        self.low = low
        self.high = high
    }

    init(_ characters: String) {
        var low: UInt64 = 0
        var high: UInt64 = 0
        for byte in characters.utf8 where byte < 128 {
            if byte < 64 { low |= 1 << UInt64(byte) } else { high |= 1 << UInt64(byte - 64) }
        }
        self.init(low: low, high: high)
    }

    func contains(_ byte: UInt8) -> Bool {
        switch byte {
        case 0..<64: low & (1 << UInt64(byte)) != 0
        case 64..<128: high & (1 << UInt64(byte - 64)) != 0
        default: false
        }
    }

    private func union(_ characters: String) -> URICharacters {
        let other = URICharacters(characters)
        return URICharacters(low: low | other.low, high: high | other.high)
    }

    static let unreserved = URICharacters("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
    /// reg-name without percent-encoding.
    static let hostCharacters = unreserved.union("!$&'()*+,;=")
    static let userinfoCharacters = hostCharacters.union(":")
    /// pchar without percent-encoding, and the slash.
    static let pathCharacters = userinfoCharacters.union("@/")
    /// For both query and fragment.
    static let queryCharacters = pathCharacters.union("?")
    /// The printable ASCII characters that are not allowed anywhere in a URI; mapping encodes them (RFC 3987 §3.1).
    static let mappable = URICharacters(" \"<>\\^`{|}")
}

/// The address in brackets: IPv6 or a later version (RFC 3986 §3.2.2).
enum IPLiteral {
    static func isValid(_ text: ArraySlice<UInt8>) -> Bool {
        guard let first = text.first else { return false }
        return first.lowerCased == UInt8(ascii: "v") ? isFutureAddress(text.dropFirst()) : isIPv6Address(text)
    }

    private static func isFutureAddress(_ text: ArraySlice<UInt8>) -> Bool {
        guard let dot = text.firstIndex(of: UInt8(ascii: ".")) else { return false }
        let version = text[..<dot]
        let address = text[(dot + 1)...]
        return !version.isEmpty && version.allSatisfy { $0.hexValue != nil } && !address.isEmpty
            && address.allSatisfy(URICharacters.userinfoCharacters.contains)
    }

    private static func isIPv6Address(_ text: ArraySlice<UInt8>) -> Bool {
        // The longest address has 45 bytes; the limit also keeps the splitting below cheap.
        guard text.count <= 45 else { return false }
        let colon = UInt8(ascii: ":")
        guard let gap = text.indices.first(where: { text[$0...].starts(with: [colon, colon]) }) else {
            return groupCount(text) == 8
        }
        let left = text[..<gap]
        let right = text[(gap + 2)...]
        guard let before = left.isEmpty ? 0 : groupCount(left, allowsIPv4: false),
            let after = right.isEmpty ? 0 : groupCount(right)
        else { return false }
        return before + after <= 7
    }

    /// The number of 16-bit groups between single colons; nil if one is malformed.
    private static func groupCount(_ text: ArraySlice<UInt8>, allowsIPv4: Bool = true) -> Int? {
        let pieces = text.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        var groups = 0
        for (index, piece) in pieces.enumerated() {
            if allowsIPv4, index == pieces.count - 1, isIPv4Address(piece) {
                groups += 2
            } else {
                guard !piece.isEmpty, piece.count <= 4, piece.allSatisfy({ $0.hexValue != nil }) else { return nil }
                groups += 1
            }
        }
        return groups
    }

    private static func isIPv4Address(_ text: ArraySlice<UInt8>) -> Bool {
        let octets = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        return octets.count == 4
            && octets.allSatisfy { octet in
                guard let value = FieldScanner.number(octet, limit: 1000) else { return false }
                return value <= 255 && (octet.count == 1 || octet.first != UInt8(ascii: "0"))
            }
    }
}

extension UInt8 {
    var hexValue: UInt8? {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): self - UInt8(ascii: "A") + 10
        default: nil
        }
    }

    var upperCased: UInt8 {
        self >= UInt8(ascii: "a") && self <= UInt8(ascii: "z") ? self & 0xDF : self
    }
}
