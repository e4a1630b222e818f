// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Redis

    /// What happens within the server in one step for all processes: one script a kind of change, each beginning with the same functions.
    ///
    /// All keys begin with KEYS[1], which holds the hash tag, so that they lie in one slot. Every script answers
    /// `{answer, bytes used, entries held, entries evicted}`. The layout stands in `docs/operating/redis.md`.
    struct SharedScript: Sendable {
        let text: String
        /// The digest by which a server that has run it knows it.
        let digest: String

        init(_ body: String) {
            text = SharedScript.functions + body
            digest = ScriptDigest(of: Array(text.utf8)).hex
        }

        private static let functions = """
            local K = KEYS[1]
            local evicted = 0
            local function num(s) return tonumber(s or '0') or 0 end
            local function answer(x)
              return {x, num(redis.call('GET', K..'used')), redis.call('ZCARD', K..'ids'), evicted}
            end
            local function chunks(b, c, f) for i = 0, c - 1 do f(K..'b:'..b..':'..i) end end
            local function freebody(b, c)
              if redis.call('EXISTS', K..'r:'..b) == 1 then
                chunks(b, c, function(k) redis.call('EXPIRE', k, 600) end)
                redis.call('SET', K..'o:'..b, c, 'EX', 600)
              else
                chunks(b, c, function(k) redis.call('UNLINK', k) end)
              end
            end
            local function drop(id)
              local z = redis.call('HGET', K..'z', id)
              if not z then return 0 end
              local h = redis.call('HMGET', K..'e:'..id, 'b', 'c', 'p', 't')
              redis.call('HDEL', K..'z', id)
              redis.call('DECRBY', K..'used', num(z))
              redis.call('DEL', K..'e:'..id)
              redis.call('ZREM', K..'ids', id)
              redis.call('ZREM', K..'age', id)
              redis.call('ZREM', K..'useless', id)
              redis.call('ZREM', K..'k:'..string.sub(id, 1, 32), id)
              if redis.call('SREM', K..'pins', id) == 1 then redis.call('DECRBY', K..'pinned', num(z)) end
              if h[4] and h[4] ~= '[]' then
                for _, t in ipairs(cjson.decode(h[4])) do redis.call('SREM', K..'t:'..t, id) end
              end
              if h[1] and h[1] ~= '' then freebody(h[1], num(h[2])) end
              return 1
            end
            local function dead(id)
              local h = redis.call('HMGET', K..'e:'..id, 'n', 't')
              if not h[1] then return true end
              local n = tonumber(h[1])
              if n <= num(redis.call('GET', K..'all')) then return true end
              if h[2] ~= '[]' and redis.call('HLEN', K..'tg') > 0 then
                for _, t in ipairs(cjson.decode(h[2])) do
                  if n <= num(redis.call('HGET', K..'tg', t)) then return true end
                end
              end
              return false
            end
            local function dropwriter(w)
              local h = redis.call('HMGET', K..'w:'..w, 'r', 'b', 'c', 'g')
              if not h[1] then return 0 end
              redis.call('DECRBY', K..'used', num(h[1]))
              chunks(h[2], num(h[3]), function(k) redis.call('EXPIRE', k, 600) end)
              redis.call('DEL', K..'w:'..w)
              redis.call('ZREM', K..'wi', w)
              redis.call('SREM', K..'wk:'..h[4], w)
              return 1
            end
            local function milliseconds()
              local t = redis.call('TIME')
              return num(t[1]) * 1000 + math.floor(num(t[2]) / 1000)
            end
            local function reap()
              for _, w in ipairs(redis.call('ZRANGEBYSCORE', K..'wi', '-inf', milliseconds() - 900000, 'LIMIT', 0, 4)) do
                dropwriter(w)
              end
            end
            local function room(need, cap, now)
              for step = 1, 10000 do
                if num(redis.call('GET', K..'used')) + need <= cap then return true end
                local id = redis.call('ZRANGEBYSCORE', K..'useless', '-inf', now, 'LIMIT', 0, 1)[1]
                  or redis.call('ZRANGE', K..'age', 0, 0)[1]
                if not id then return false end
                drop(id)
                evicted = evicted + 1
              end
              return false
            end
            local function tell(channel, origin, what) redis.call('PUBLISH', channel, origin..what) end
            local function show(id)
              local h = redis.call('HMGET', K..'e:'..id, 'k', 'v', 'd', 'u', 't', 'n', 'l', 's')
              h[9] = redis.call('SISMEMBER', K..'pins', id)
              h[10] = num(redis.call('HGET', K..'z', id))
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
              redis.call('ZADD', K..'age', redis.call('INCR', K..'tick'), id)
              if u ~= 'never' then redis.call('ZADD', K..'useless', u, id) end
            end

            """
    }
#endif
