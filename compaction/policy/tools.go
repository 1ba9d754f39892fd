package policy

import "strings"

// selects reports whether a step applies to a tool: the name matches a pattern in tools, or tools is empty, and it
// matches none in except. * matches any characters; case is ignored.
func selects(tools, except []string, name string) bool {
	return (len(tools) == 0 || matchesAny(tools, name)) && !matchesAny(except, name)
}

func matchesAny(patterns []string, name string) bool {
	for _, p := range patterns {
		if matches(strings.ToLower(p), strings.ToLower(name)) {
			return true
		}
	}
	return false
}

func matches(pattern, name string) bool {
	pieces := strings.Split(pattern, "*")
	if len(pieces) == 1 {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, pieces[0])
	if !ok {
		return false
	}
	last := len(pieces) - 1
	for _, piece := range pieces[1:last] {
		i := strings.Index(name, piece)
		if i < 0 {
			return false
		}
		name = name[i+len(piece):]
	}
	return strings.HasSuffix(name, pieces[last])
}
