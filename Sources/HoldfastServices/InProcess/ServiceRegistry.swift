// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// The services that a router knows, and the callbacks it still has to make: a value without effects.
struct ServiceRegistry {
    /// A service of either kind.
    enum Entry: Sendable {
        case instance(any InProcessService)
        case type(any ServiceProtocol.Type)

        var serviceIdentifier: String {
            switch self {
            case .instance(let service): service.serviceIdentifier
            case .type(let type): type.serviceIdentifier
            }
        }

        func registered() {
            switch self {
            case .instance(let service): service.registered()
            case .type(let type): type.registered()
            }
        }

        func unregistered() {
            switch self {
            case .instance(let service): service.unregistered()
            case .type(let type): type.unregistered()
            }
        }

        /// Whether this is that type.
        func isType(_ other: any ServiceProtocol.Type) -> Bool {
            if case .type(let type) = self { ObjectIdentifier(type) == ObjectIdentifier(other) } else { false }
        }
    }

    /// A callback that is due.
    enum Notice: Sendable {
        case registered(Entry)
        case unregistered(Entry)
    }

    private var entries: [String: Entry] = [:]
    private var notices: [Notice] = []
    private var isNotifying = false

    subscript(serviceIdentifier: String) -> Entry? { entries[serviceIdentifier] }

    /// False if the identifier is taken, or cannot be a path component.
    mutating func register(_ entry: Entry, as serviceIdentifier: String) -> Bool {
        guard entries[serviceIdentifier] == nil, !serviceIdentifier.isEmpty, !serviceIdentifier.contains("/") else {
            return false
        }
        entries[serviceIdentifier] = entry
        notices.append(.registered(entry))
        return true
    }

    mutating func unregister(_ serviceIdentifier: String, where isMeant: (Entry) -> Bool) {
        guard let entry = entries[serviceIdentifier], isMeant(entry) else { return }
        entries[serviceIdentifier] = nil
        notices.append(.unregistered(entry))
    }

    /// Whether callbacks are due and nobody is making them; if true, the caller makes them all.
    mutating func beginNotifying() -> Bool {
        guard !isNotifying, !notices.isEmpty else { return false }
        isNotifying = true
        return true
    }

    /// The next callbacks; nil, and the end of notifying, if there are none.
    mutating func takeNotices() -> [Notice]? {
        guard !notices.isEmpty else {
            isNotifying = false
            return nil
        }
        defer { notices = [] }
        return notices
    }
}
