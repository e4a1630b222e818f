// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Cookies that do not affect whose response it is: cookies of load balancers and analytics, which many sites change with every
/// response.
///
/// A cache sees requests without them (``view(of:)``), and stores no Set-Cookie line that sets one. What is sent does not change.
public struct IgnoredCookies: Sendable, Hashable {
    /// Behind one reference, so that options are cheap to copy.
    private final class Patterns: Sendable {
        let names: [String]
        let exact: Set<String>
        let prefixes: [String]

        init(_ names: [String]) {
            self.names = names
            // Two ASCII strings are equal only if their bytes are.
            let usable = names.filter { $0.utf8.allSatisfy { $0 < 0x80 } }
            exact = Set(usable.filter { !$0.hasSuffix("*") })
            prefixes = usable.filter { $0.hasSuffix("*") }.map { String($0.dropLast()) }
        }
    }

    private let patterns: Patterns

    /// The names, as they were given.
    public var names: [String] { patterns.names }

    /// Cookies with these names.
    ///
    /// - Parameter names: compared byte for byte, as in RFC 6265. A trailing `*` matches any rest; anywhere else it is an ordinary
    ///   character. A text that is not a token (RFC 9110 §5.6.2) is not a cookie's name and matches nothing.
    public init(names: [String]) { patterns = Patterns(names) }

    /// No cookies.
    public static let none = IgnoredCookies(names: [])

    /// A request's fields as the cache sees them: without the ignored cookies.
    ///
    /// The rest of a Cookie line stays as it is; a Cookie field without a rest is absent. A pair is removed only if every parser
    /// reads the same pair: name and value have the form of RFC 6265 §4.1.1, and no quote is open in the line. Anything else stays,
    /// since a server might read another cookie in it.
    ///
    /// - Parameter fields: the fields of a request.
    /// - Returns: the same fields if there is nothing to ignore.
    public func view(of fields: HeaderFields) -> HeaderFields {
        guard !patterns.names.isEmpty, fields.contains(.cookie) else { return fields }
        var lines: [HeaderFields.Line] = []
        lines.reserveCapacity(fields.count)
        var isChanged = false
        var hasOthers = false
        for line in fields {
            guard line.name == .cookie else {
                lines.append(line)
                continue
            }
            let others = self.others(in: line.value)
            isChanged = isChanged || others != nil
            let isBlank = (others ?? line.value).utf8.allSatisfy { $0 == UInt8(ascii: ";") || $0.isOptionalWhitespace }
            hasOthers = hasOthers || !isBlank
            if others == nil || !isBlank {
                lines.append(others.map { HeaderFields.Line(name: line.name, value: $0) } ?? line)
            }
        }
        guard isChanged else { return fields }
        if !hasOthers { lines.removeAll { $0.name == .cookie } }
        return HeaderFields(lines)
    }

    /// A response's fields without the Set-Cookie lines that set ignored cookies.
    ///
    /// - Parameter fields: the fields of a response; Set-Cookie lines that were joined by commas are recognized.
    /// - Returns: the same fields if there is nothing to remove.
    package func withoutSetCookies(_ fields: HeaderFields) -> HeaderFields {
        guard !setCookies(in: fields).isEmpty else { return fields }
        return HeaderFields(
            fields.compactMap { line -> HeaderFields.Line? in
                guard line.name == .setCookie else { return line }
                let members = IgnoredCookies.members(ofSetCookie: line.value)
                let kept = members.filter { !isSetting($0) }
                if kept.isEmpty { return nil }
                if kept.count == members.count { return line }
                return HeaderFields.Line(name: line.name, value: kept.joined(separator: ", "))
            }
        )
    }

    /// The parts of a response's Set-Cookie lines that set ignored cookies, one value for each cookie.
    package func setCookies(in fields: HeaderFields) -> [String] {
        guard !patterns.names.isEmpty, fields.contains(.setCookie) else { return [] }
        return fields.values(of: .setCookie).flatMap {
            IgnoredCookies.members(ofSetCookie: $0).filter { isSetting($0) }
        }
    }

    public static func == (left: IgnoredCookies, right: IgnoredCookies) -> Bool {
        left.patterns === right.patterns || left.names == right.names
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(names)
    }

    // MARK: Pairs

    /// A Cookie line without the ignored pairs; nil if there are none.
    private func others(in value: String) -> String? {
        let pairs = value.utf8.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
        // Some servers read a semicolon in quotes as part of the value.
        guard pairs.allSatisfy({ $0.count { $0 == UInt8(ascii: "\"") } % 2 == 0 }) else { return nil }
        let kept = pairs.filter { !isIgnored($0) }
        return kept.count == pairs.count ? nil : kept.map { String(Substring($0)) }.joined(separator: ";")
    }

    private func isIgnored(_ pair: Substring.UTF8View) -> Bool {
        guard let sign = pair.firstIndex(of: UInt8(ascii: "=")) else { return false }
        var value = IgnoredCookies.trimmed(pair[pair.index(after: sign)...])
        if value.count > 1, value.first == UInt8(ascii: "\""), value.last == UInt8(ascii: "\"") {
            value = value.dropFirst().dropLast()
        }
        // Joined Cookie lines have a comma between them, and some servers split pairs at commas.
        return isName(IgnoredCookies.trimmed(pair[..<sign])) && value.allSatisfy(\.isCookieOctet)
    }

    private func isSetting(_ setCookie: String) -> Bool {
        let pair = setCookie.utf8.prefix { $0 != UInt8(ascii: ";") }
        guard let sign = pair.firstIndex(of: UInt8(ascii: "=")) else { return false }
        return isName(IgnoredCookies.trimmed(pair[..<sign]))
    }

    private func isName(_ name: Substring.UTF8View) -> Bool {
        guard !name.isEmpty, name.allSatisfy(\.isTokenCharacter) else { return false }
        return patterns.exact.contains(String(Substring(name)))
            || patterns.prefixes.contains { name.starts(with: $0.utf8) }
    }

    private static func trimmed(_ text: Substring.UTF8View) -> Substring.UTF8View {
        var text = text.drop(while: \.isOptionalWhitespace)
        while let last = text.last, last.isOptionalWhitespace { text.removeLast() }
        return text
    }

    /// The lines that one Set-Cookie value was joined from; URLSession returns all lines as one.
    ///
    /// A comma begins another cookie if a name and an equals sign follow; a comma in a date does not.
    private static func members(ofSetCookie value: String) -> [String] {
        let bytes = value.utf8
        var members: [String] = []
        var start = bytes.startIndex
        var place = bytes.startIndex
        while let comma = bytes[place...].firstIndex(of: UInt8(ascii: ",")) {
            place = bytes.index(after: comma)
            let rest = bytes[place...].drop(while: \.isOptionalWhitespace)
            let name = rest.prefix(while: \.isTokenCharacter)
            guard !name.isEmpty, rest[name.endIndex...].first == UInt8(ascii: "=") else { continue }
            members.append(String(Substring(trimmed(bytes[start..<comma]))))
            start = rest.startIndex
        }
        members.append(String(Substring(trimmed(bytes[start...]))))
        return members
    }
}

extension UInt8 {
    /// Whether a cookie's value may contain the byte (RFC 6265 §4.1.1).
    fileprivate var isCookieOctet: Bool {
        switch self {
        case 0x21, 0x23...0x2B, 0x2D...0x3A, 0x3C...0x5B, 0x5D...0x7E: true
        default: false
        }
    }
}

extension IgnoredCookies {
    /// Well-known cookies of load balancers, bot filters and analytics, by their vendors' documentation.
    ///
    /// They say which server answers, or count visits; no origin bases its content on them. Not included are cookies that may carry
    /// a login or select content, however often they change: session cookies of applications (`JSESSIONID`, `SERVERID`), proofs of
    /// a passed challenge (`cf_clearance`), waiting rooms, experiments (`_gaexp`, `__utmx`), and visitor profiles that pages are
    /// built from (`hubspotutk`, `__hstc`, Adobe's, Intercom's).
    public static let wellKnown = IgnoredCookies(names: stickiness + botFilters + analytics)

    /// Which of several servers answers.
    private static let stickiness = [
        // AWS: Application Load Balancer, its target groups and applications, Classic Load Balancer.
        // Exact names, because AWSELBAuthSessionCookie, the login of a load balancer that authenticates, also begins with AWSELB.
        "AWSALB", "AWSALBCORS", "AWSALBTG", "AWSALBTGCORS", "AWSALBAPP-*", "AWSELB", "AWSELBCORS",
        // Cloudflare Load Balancing; Google Cloud.
        "__cflb", "GCLB",
        // Azure: App Service, Application Gateway, Front Door.
        "ARRAffinity", "ARRAffinitySameSite", "ApplicationGatewayAffinity", "ApplicationGatewayAffinityCORS",
        "ASLBSA", "ASLBSACORS",
        // F5 BIG-IP; Imperva; DigitalOcean; Heroku.
        "BIGipServer*", "nlbi_*", "DO-LB", "heroku-session-affinity",
    ]

    /// How likely a client is a bot, and how often it sends requests.
    private static let botFilters = [
        // Cloudflare.
        "__cf_bm", "_cfuvid", "__cfruid",
        // Imperva.
        "incap_ses_*", "visid_incap_*",
        // Akamai Bot Manager.
        "ak_bmsc", "bm_mi", "bm_sv", "bm_sz", "_abck",
    ]

    /// How pages count visits.
    private static let analytics = [
        // Google Analytics, its older form, and Google Ads.
        "_ga", "_ga_*", "_gid", "_gat", "_gat_*", "_dc_gtm_*", "_gac_*", "_gcl_*",
        "__utma", "__utmb", "__utmc", "__utmt", "__utmt_*", "__utmz",
        // Meta; Microsoft Advertising and Clarity.
        "_fbp", "_fbc", "_uetsid", "_uetvid", "_uetmsclkid", "_clck", "_clsk",
        // Hotjar; Matomo; HubSpot's visit counts; Yandex Metrica; Baidu; Snowplow; Datadog.
        "_hjid", "_hjSession_*", "_hjSessionUser_*", "_hjFirstSeen", "_hjAbsoluteSessionInProgress",
        "_hjIncludedInSessionSample_*",
        "_hjIncludedInPageviewSample", "_pk_id.*", "_pk_ses.*", "_pk_ref.*", "_pk_cvar.*", "_pk_hsr.*", "__hssc",
        "__hssrc", "_ym_*", "Hm_lvt_*", "Hm_lpvt_*", "_sp_id.*", "_sp_ses.*", "_dd_s",
    ]
}
