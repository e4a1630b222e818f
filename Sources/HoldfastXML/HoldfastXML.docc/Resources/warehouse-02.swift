// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import HoldfastXML

struct Order: Codable, Sendable, Equatable {
    let item: Int
    let count: Int
}

struct Warehouse: WebService {
    static let url = URL(string: "https://warehouse.example/api") ?? URL(filePath: "/")
    static let shared = ServiceClient(Warehouse(), retrierFactory: .default)
    let baseURL = Warehouse.url
}

struct SaveOrder: InOutEndpoint {
    typealias Service = Warehouse
    typealias Input = Order
    typealias Output = Order
    static let method = Method.post
    static let inputFormat = InputFormat.XML(rootNode: "order")
    static let outputFormat = OutputFormat.XML
    let path = "orders"
}
