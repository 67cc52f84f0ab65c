-- Evaluates scripts of rules with Prosody's mod_firewall, without a server: lua firewall.lua FOLDER < cases. Each case
-- consists of a line "CHAIN HOUR MINUTE WEEKDAY" (0 is Sunday), the script, a line "----", one stanza per line, and a
-- line "====". For each stanza, the output has one line of fields that are separated by tabs: the decision, the stanza
-- after the evaluation, and each stanza that was sent.
package.path = "/usr/lib/prosody/?.lua;" .. package.path
package.cpath = "/usr/lib/prosody/?.so;" .. package.cpath
local folder = arg[1]

local stanzas, xml = require "util.stanza", require "util.xml"
for _, name in ipairs { "net.http", "util.timer", "core.features", "core.usermanager" } do package.loaded[name] = {} end
package.loaded["core.features"] = nil
package.loaded["core.configmanager"] = { resolve_relative_path = function (_, path) return path end }
package.loaded["util.logger"] = { init = function () return function () end end }
package.loaded["util.hashes"] = {}
package.loaded["socket"] = { gettime = function () return 1000 end }
package.loaded["util.envload"] = { envload = function (code, name, env) return load(code, name, "t", env) end }
local roster = { ["romeo@example.net"] = { subscription = "both", groups = { Friends = true } } }
package.loaded["core.rostermanager"] = {
	load_roster = function () return roster end;
	unsubscribed = function () end, roster_push = function () end;
	is_contact_subscribed = function (_, _, jid) return roster[jid] ~= nil end;
	is_contact_pending_in = function (_, _, jid) return jid == "paris@example.com" end;
}

local sent
-- The original `to` of the current stanza, which a forwarded copy lacks if Prosody has removed it.
local removed
local function say(stanza)
	local forwarded = stanza:get_child("forwarded", "urn:xmpp:forward:0")
	if forwarded then forwarded.tags[1].attr.to = forwarded.tags[1].attr.to or removed end
	sent[#sent + 1] = tostring(stanza)
end

-- Every full JID is online.
local online = setmetatable({}, { __index = function (_, jid) return jid:find("/", 1, true) and {} or nil end })

local function new_firewall(hour, minute, weekday)
	local hooks = {}
	local env = setmetatable({}, { __index = _G })
	env._G = env
	-- mod_firewall compares days of the week with the day of the month, and counts Monday as 2.
	local date = { hour = hour, min = minute, day = weekday == 0 and 0 or weekday + 1 }
	env.os = setmetatable({ date = function () return date end }, { __index = os })
	env.prosody = {
		hosts = { ["example.net"] = {} }, full_sessions = online, paths = { config = "." }, events = {},
		core_post_stanza = function (_, stanza) say(stanza) end;
	}
	env.module = {
		name = "firewall", host = "example.net";
		shared = function () return {} end, get_option = function (_, _, default) return default end;
		get_option_boolean = function () return false end, get_option_number = function (_, _, default) return default end;
		hook = function (_, event, handler) hooks[event] = handler end, hook_global = function () end;
		log = function (_, level, text, ...) if level == "error" then io.stderr:write(text:format(...), "\n") end end;
		fire_event = function (_, event, data) if hooks[event] then return hooks[event](data) end end;
		require = function (_, name) return assert(loadfile(folder .. "/" .. name .. ".lib.lua", "t", env))() end;
	}
	assert(loadfile(folder .. "/mod_firewall.lua", "t", env))()
	return env, hooks
end

-- Removes the namespace declarations of the stream's namespace, as Prosody's parser does.
local function inherit(stanza)
	if stanza.attr.xmlns == "jabber:client" then stanza.attr.xmlns = nil end
	for _, child in ipairs(stanza.tags) do inherit(child) end
end

local events = { deliver = "message/bare", preroute = "pre-message/bare", deliver_remote = "route/remote" }

local function run(chain, time, script, lines)
	local path = os.tmpname()
	local file = assert(io.open(path, "w"))
	file:write(script)
	file:close()
	local env, hooks = new_firewall(table.unpack(time))
	env.load_script(path)
	os.remove(path)
	local handler = hooks[events[chain]]
	local session = { full_jid = "juliet@example.net/balcony", username = "juliet", host = "example.net", send = say }
	session.firewall_marks = {}
	for line in lines:gmatch("([^\n]+)\n") do
		sent = {}
		local stanza = assert(xml.parse(line))
		inherit(stanza)
		if chain ~= "deliver" and not stanza.attr.from then stanza.attr.from = session.full_jid end
		-- If `to` is the bare JID of the sender's account, Prosody removes it before handlers get the stanza.
		local own = stanza.attr.to
		if own == "juliet@example.net" and stanza.attr.from:match("^[^/]*") == own then stanza.attr.to = nil end
		removed = own
		local ok, result = pcall(handler, { stanza = stanza, origin = session })
		-- Before routing, a stanza that no handler handles continues.
		if chain == "preroute" and result == false then result = nil end
		-- The server answers a stanza that no handler handles with an error.
		local kind = stanza.attr.type
		if ok and result == false and kind ~= "error" and not (stanza.name == "iq" and kind == "result") then
			say(stanzas.error_reply(stanza, "cancel", "service-unavailable"))
		end
		stanza.attr.to = stanza.attr.to or own
		local word = not ok and "failed " .. tostring(result) or result == nil and "pass" or "drop"
		print(word .. "\t" .. tostring(stanza) .. (#sent > 0 and "\t" .. table.concat(sent, "\t") or ""))
	end
end

local input = io.read("a")
for chain, hour, minute, day, script, lines in
	input:gmatch("([%l_]+) (%d+) (%d+) (%d)\n(.-)\n%-%-%-%-\n(.-)====\n") do
	run(chain, { tonumber(hour), tonumber(minute), tonumber(day) }, script, lines)
end
