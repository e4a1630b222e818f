// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis
    /// A change that the server makes in one step for all processes: one script for each kind, all with the same functions at
    /// the start.
    ///
    /// All keys begin with KEYS[1], which has the hash tag, so that they are in one slot. The last three arguments of each
    /// script are the caller's secret, its name, and the highest number that it has received. Every script returns `{answer,
    /// bytes used, entries held, entries evicted, epoch, number, secret, what the server said against a message}`.
    ///
    /// No loss of a key can make a removed entry visible: an entry is shown only while its epoch is the store's, the index of
    /// its key has its version, and the set of each of its tags has its name. If the sums and the index do not agree, a new
    /// epoch begins. A full server accepts a command that needs memory once the script has deleted something, so scripts that
    /// must not fail delete first. The layout is documented in `docs/operating/redis.md`.
    struct SharedScript: Sendable {
        let script: RedisScript

        init(_ body: String) {
            script = RedisScript(SharedScript.functions + body)
        }

        private static let functions = """
            local K = KEYS[1]
            local G = K..'g'
            local S, O, knownnumber = ARGV[#ARGV - 2], ARGV[#ARGV - 1], tonumber(ARGV[#ARGV]) or 0
            local evicted, untold = 0, ''
            local function num(s) return tonumber(s or '0') or 0 end
            local function ask(...)
              local r = redis.pcall(...)
              if type(r) ~= 'table' or not r.err then return r end
              -- What a user may not ask says nothing about what is stored.
              for _, words in ipairs({'NOPERM', 'user executing the script', 'ACL failure'}) do
                if string.find(r.err, words, 1, true) then error(r.err, 0) end
              end
              return nil
            end
            local function size(...)
              local r = ask(...)
              return type(r) == 'number' and r or -1
            end
            local function force() redis.call('DEL', K..'none') end
            local function time() return redis.call('TIME') end
            local function milliseconds()
              local t = time()
              return num(t[1]) * 1000 + math.floor(num(t[2]) / 1000)
            end
            local function fresh()
              local t = time()
              return O..t[1]..'.'..t[2]
            end
            local E, agreed
            local function learn()
              local g = ask('HMGET', G, 'e', 's') or {}
              E, agreed = g[1], not g[1] or g[2] == S
              return g[2]
            end
            local secret = learn()
            local function sum(name) return num(redis.call('HGET', G, name)) end
            -- Without the sum there would be a minus before a zero.
            local function add(name, n) return redis.call('HINCRBY', G, name, n + 0) end
            local function sound()
              if not E then return false end
              local c = sum('count')
              return size('ZCARD', K..'ids') == c and size('ZCARD', K..'changed') == sum('changed')
                and size('ZCARD', K..'groups') == sum('groups') and size('HLEN', K..'z') == c + size('ZCARD', K..'wi')
                and size('ZCARD', K..'age') + size('SCARD', K..'pins') == c and size('ZCARD', K..'useless') >= 0
            end
            -- What is stored is gone from here on. It counts until it is removed, some of it with each write. The number tells an
            -- earlier state of the store, from a snapshot, from this one.
            local function turn()
              add('n', 1)
              redis.call('HSET', G, 'e', fresh(), 'cleared', milliseconds(), 'sweep', '-')
            end
            local function tell(what)
              local r = redis.pcall('PUBLISH', K..'changes', O..what)
              if type(r) == 'table' and r.err then
                untold = r.err
                if E then turn() end
              end
            end
            local function renew()
              force()
              local former = num(ask('HGET', G, 'n'))
              if not sound() then
                redis.call('DEL', G)
                -- Nothing can be counted by such an index, but what it names can still be removed.
                if size('ZCARD', K..'ids') < 1 then
                  redis.call('UNLINK', K..'tags', K..'bodies')
                elseif size('ZCARD', K..'old') < 1 then
                  ask('RENAME', K..'ids', K..'old')
                else
                  -- They are few: each write since the last loss has removed sixteen of what that one left.
                  for _, id in ipairs(redis.call('ZRANGE', K..'ids', 0, -1)) do redis.call('ZADD', K..'old', 0, id) end
                end
                redis.call('UNLINK', K..'z', K..'ids', K..'age', K..'useless', K..'pins', K..'wi', K..'changed', K..'groups')
                redis.call('HSET', G, 'used', 0, 'count', 0, 'pinned', 0, 'tick', 0, 'changed', 0, 'groups', 0)
              end
              -- Numbers only grow, and are above those of a store in memory.
              local t = time()
              local n = math.max(num(t[1]) * 1000000 + num(t[2]), 2 ^ 41, knownnumber, former)
              redis.call('HSET', G, 's', secret or S, 'n', string.format('%.0f', n))
              turn()
              secret = learn()
              tell('*')
            end
            if E and sum('n') < knownnumber then renew() end
            -- When a key, its group or everything was last invalidated: who asked for it before that may have the former state.
            local function changed(digest)
              return math.max(sum('cleared'), num(ask('ZSCORE', K..'changed', digest)),
                num(ask('ZSCORE', K..'groups', string.sub(digest, 1, 8))))
            end
            -- In 'changed', by digest, or in 'groups'.
            local function note(set, name)
              local k, now = K..set, milliseconds()
              if not ask('ZADD', k, now, name) then
                redis.call('UNLINK', k)
                redis.call('HSET', G, 'cleared', now)
              end
              -- Nobody's request is answered after a quarter of an hour; of too many, the oldest count as everything.
              for _, old in ipairs(ask('ZRANGEBYSCORE', k, '-inf', now - 900000, 'LIMIT', 0, 16) or {}) do ask('ZREM', k, old) end
              if size('ZCARD', k) > 10000 then
                for _, old in ipairs(redis.call('ZRANGE', k, 0, 15)) do
                  redis.call('HSET', G, 'cleared', math.max(sum('cleared'), num(redis.call('ZSCORE', k, old))))
                  redis.call('ZREM', k, old)
                end
              end
              if E then redis.call('HSET', G, set, math.max(0, size('ZCARD', k))) end
            end
            local function answer(x)
              local g = ask('HMGET', G, 'used', 'count', 'e', 'n', 's') or {}
              return {x, num(g[1]), num(g[2]), evicted, g[3] or '', num(g[4]), g[5] or '', untold}
            end
            local function chunks(b, c, f) for i = 0, c - 1 do f(K..'b:'..b..':'..i) end end
            local function hold(b)
              redis.call('INCR', K..'r:'..b)
              redis.call('EXPIRE', K..'r:'..b, 600)
            end
            local function freebody(b, c)
              if redis.call('EXISTS', K..'r:'..b) == 1 then
                chunks(b, c, function(k) redis.call('EXPIRE', k, 600) end)
                redis.call('SET', K..'o:'..b, c, 'EX', 600)
              else
                chunks(b, c, function(k) redis.call('UNLINK', k) end)
              end
            end
            local function tags(list) return list and list ~= '[]' and cjson.decode(list) or {} end
            -- An expired entry cannot say which tags it had.
            local function untag(id, list)
              for _, t in ipairs(tags(list or ask('HGET', K..'tags', id))) do ask('SREM', K..'t:'..t, id) end
              ask('HDEL', K..'tags', id)
            end
            local function unbook(id)
              local z = num(ask('HGET', K..'z', id))
              if ask('HDEL', K..'z', id) == 1 then add('used', -z) end
              return z
            end
            local function drop(id)
              force()
              local h = ask('HMGET', K..'e:'..id, 'b', 'c', 'n', 't') or {}
              local z = unbook(id)
              redis.call('UNLINK', K..'e:'..id)
              if ask('ZREM', K..'ids', id) == 1 then add('count', -1) end
              ask('ZREM', K..'age', id)
              ask('ZREM', K..'useless', id)
              ask('ZREM', K..'k:'..string.sub(id, 1, 32), id)
              if ask('SREM', K..'pins', id) == 1 then add('pinned', -z) end
              untag(id, h[4])
              -- An entry that was lost cannot say which body it had.
              local b, c = h[1], h[2]
              if not b then b, c = string.match(ask('HGET', K..'bodies', id) or '', '^(%w+) (%d+)$') end
              if b and b ~= '' then freebody(b, num(c)) end
              ask('HDEL', K..'bodies', id)
              return h[3] and 1 or 0
            end
            local function dead(id)
              local h = ask('HMGET', K..'e:'..id, 'n', 't', 'e') or {}
              if not E or not h[1] or h[3] ~= E then return true end
              if num(ask('ZSCORE', K..'k:'..string.sub(id, 1, 32), id)) ~= num(h[1]) then return true end
              for _, t in ipairs(tags(h[2])) do
                if ask('SISMEMBER', K..'t:'..t, id) ~= 1 then return true end
              end
              return false
            end
            local function bear(list, id)
              local all = tags(list)
              if all[1] and not ask('HSET', K..'tags', id, list) then redis.call('UNLINK', K..'tags') end
              for _, t in ipairs(all) do
                if not ask('SADD', K..'t:'..t, id) then
                  redis.call('UNLINK', K..'t:'..t)
                  redis.call('SADD', K..'t:'..t, id)
                end
              end
            end
            -- A writer whose entry must not appear still counts: its followers read on, and it may write on for them.
            local function supersede(w) ask('HDEL', K..'w:'..w, 'e') end
            local function dropwriter(w)
              force()
              local h = ask('HMGET', K..'w:'..w, 'b', 'c', 'g') or {}
              unbook(w)
              redis.call('UNLINK', K..'w:'..w)
              ask('ZREM', K..'wi', w)
              if h[1] then
                chunks(h[1], num(h[2]), function(k) redis.call('UNLINK', k) end)
                ask('SREM', K..'wk:'..h[3], w)
              end
            end
            -- Removes some of what is gone: first what a former index named, then what follows a place. Returns how many, and
            -- the next place.
            local function clear(from, most)
              local old = ask('ZRANGE', K..'old', 0, most - 1) or {}
              local ids = old[1] and old or ask('ZRANGEBYLEX', K..'ids', from, '+', 'LIMIT', 0, most) or {}
              local count = 0
              for _, id in ipairs(ids) do
                if dead(id) then count = count + drop(id) end
                ask('ZREM', K..'old', id)
              end
              return count, old[1] and from or ids[most] and '('..ids[most] or ''
            end
            local function reap()
              for _, w in ipairs(redis.call('ZRANGEBYSCORE', K..'wi', '-inf', milliseconds() - 900000, 'LIMIT', 0, 4)) do
                dropwriter(w)
              end
              local from = redis.call('HGET', G, 'sweep')
              if from and from ~= '' then
                local _, to = clear(from, 16)
                ask('HSET', G, 'sweep', to)
              end
            end
            local function room(need, cap, now)
              for step = 1, 10000 do
                if sum('used') + need <= cap then return true end
                local id = redis.call('ZRANGEBYSCORE', K..'useless', '-inf', now, 'LIMIT', 0, 1)[1]
                  or redis.call('ZRANGE', K..'age', 0, 0)[1]
                if not id then return false end
                drop(id)
                evicted = evicted + 1
              end
              return false
            end
            local function show(id)
              local h = redis.call('HMGET', K..'e:'..id, 'k', 'v', 'd', 'u', 't', 'n', 'l', 's')
              h[9] = size('SISMEMBER', K..'pins', id) == 1 and 1 or 0
              h[10] = num(ask('HGET', K..'z', id))
              return h
            end
            local function expire(id, b, c, u, now)
              local ttl = tonumber(u)
              if ttl then ttl = math.max(0, ttl - tonumber(now)) + 3600000 end
              if not ttl or ttl > 1e12 or redis.call('SISMEMBER', K..'pins', id) == 1 then
                redis.call('PERSIST', K..'e:'..id)
                if b ~= '' then chunks(b, c, function(k) redis.call('PERSIST', k) end) end
              else
                ttl = string.format('%.0f', ttl)
                redis.call('PEXPIRE', K..'e:'..id, ttl)
                if b ~= '' then chunks(b, c, function(k) redis.call('PEXPIRE', k, ttl) end) end
              end
            end
            local function rank(id, u)
              redis.call('ZREM', K..'useless', id)
              if redis.call('SISMEMBER', K..'pins', id) == 1 then
                redis.call('ZREM', K..'age', id)
                return
              end
              redis.call('ZADD', K..'age', add('tick', 1), id)
              if u ~= 'never' then redis.call('ZADD', K..'useless', u, id) end
            end

            """
    }

    /// A script of the server's, and the digest by which a server that has run it knows it.
    package struct RedisScript: Sendable {
        let text: String
        let digest: String

        init(_ text: String) {
            self.text = text
            digest = ScriptDigest(of: Array(text.utf8)).hex
        }
    }

    /// SHA-1 (FIPS 180-4), which Redis names scripts by; nothing here depends on its collision resistance.
    struct ScriptDigest: Sendable {
        let hex: String

        init(of message: [UInt8]) {
            var state: [UInt32] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0]
            var padded = message + [0x80]
            while padded.count % 64 != 56 { padded.append(0) }
            let bits = UInt64(message.count) &* 8
            for shift in stride(from: 56, through: 0, by: -8) {
                padded.append(UInt8(truncatingIfNeeded: bits >> shift))
            }
            for start in stride(from: 0, to: padded.count, by: 64) {
                ScriptDigest.compress(&state, block: padded[start..<(start + 64)])
            }
            hex = state.map { word in
                let digits = String(word, radix: 16)
                return String(repeating: "0", count: 8 - digits.count) + digits
            }.joined()
        }

        private static func compress(_ state: inout [UInt32], block: ArraySlice<UInt8>) {
            var words = stride(from: block.startIndex, to: block.endIndex, by: 4).map { place in
                block[place..<(place + 4)].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            }
            for index in 16..<80 {
                words.append(rotate(words[index - 3] ^ words[index - 8] ^ words[index - 14] ^ words[index - 16], by: 1))
            }
            var (a, b, c, d, e) = (state[0], state[1], state[2], state[3], state[4])
            for (index, word) in words.enumerated() {
                let (mixed, constant): (UInt32, UInt32) =
                    switch index / 20 {
                    case 0: (b & c | ~b & d, 0x5A82_7999)
                    case 1: (b ^ c ^ d, 0x6ED9_EBA1)
                    case 2: (b & c | b & d | c & d, 0x8F1B_BCDC)
                    default: (b ^ c ^ d, 0xCA62_C1D6)
                    }
                (a, b, c, d, e) = (rotate(a, by: 5) &+ mixed &+ e &+ constant &+ word, a, rotate(b, by: 30), c, d)
            }
            for (index, value) in [a, b, c, d, e].enumerated() { state[index] &+= value }
        }

        private static func rotate(_ word: UInt32, by count: UInt32) -> UInt32 {
            word << count | word >> (32 - count)
        }
    }
#endif
