// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import HoldfastSemantics

/// The keys that a request is looked up by, and whether its content is in them.
struct LookupKeys: Sendable {
    /// The key in the principal's partition.
    let own: CacheKey
    /// The key in the shared partition, where that may be read as well.
    let shared: CacheKey?
    /// The content of a QUERY or an opted-in POST; nil where it is no part of the keys.
    let content: RequestContent?
    /// Whether the user says that this request changes nothing, although its method may.
    let onlyAsks: Bool
    /// Why the request has no key; nil where it has.
    let bypassReason: CacheReason?

    init(
        _ head: RequestHead,
        principal: String,
        credentialFields: [FieldName],
        _ context: CallContext,
        _ options: CacheOptions
    ) {
        let rule = options.keyRule(for: head.target)
        let normalizer = LookupKeys.normalizer(head, rule, context)
        content = normalizer.flatMap { LookupKeys.content(of: head, $0, context, options) }
        onlyAsks = normalizer != nil
        bypassReason = content == nil && (onlyAsks || !context.body.isNone) ? .content : nil
        // What a POST leaves behind answers a later GET, if anything (RFC 9110 §9.3.3).
        let method = head.method == .post && content == nil ? .get : head.method
        let target = (rule?.query ?? options.query).applied(to: head.target)
        let (type, digest) = (content?.contentType ?? "", content?.digest ?? "")
        own = CacheKey(
            partition: principal,
            method: method,
            target: target,
            contentType: type,
            contentDigest: digest
        )
        let readsShared =
            switch options.mode {
            case .shared: !principal.isEmpty
            case .private:
                options.cookiesMayBorrow
                    && CachePrincipal.isCookieOnly(
                        head.fields,
                        userinfo: head.target.userinfo,
                        explicit: context.options.principal,
                        credentialFields: credentialFields
                    )
            }
        shared =
            readsShared ? CacheKey(method: method, target: target, contentType: type, contentDigest: digest) : nil
    }

    /// The content that belongs to the key of a request; nil where none does, or where it is too long or not in memory.
    static func content(of head: RequestHead, _ context: CallContext, _ options: CacheOptions) -> RequestContent? {
        normalizer(head, options.keyRule(for: head.target), context).flatMap { content(of: head, $0, context, options) }
    }

    private static func content(
        of head: RequestHead,
        _ normalizer: ContentNormalizer,
        _ context: CallContext,
        _ options: CacheOptions
    ) -> RequestContent? {
        switch context.body.form {
        case .none:
            return RequestContent([], fields: head.fields, normalizer: normalizer)
        case .bytes(let bytes) where bytes.count <= options.maximumKeyContent:
            return RequestContent(bytes.array, fields: head.fields, normalizer: normalizer)
        // Reading a file or a stream would make the look-up wait, and need it twice.
        case .bytes, .file, .factory, .oneShot, .requestStream:
            return nil
        }
    }

    /// How the content is read for the key; nil where the method, or want of the user's word, keeps it out.
    private static func normalizer(
        _ head: RequestHead,
        _ rule: KeyRule?,
        _ context: CallContext
    ) -> ContentNormalizer? {
        switch head.method {
        case .query: context.options.cachesContent ?? rule?.content ?? .raw
        case .post: context.options.cachesContent ?? (rule?.cachesPost == true ? rule?.content : nil)
        default: nil
        }
    }
}

extension RequestContent {
    /// Whether both say the same.
    func isSame(as other: RequestContent?) -> Bool {
        contentType == other?.contentType && digest == other?.digest
    }
}
