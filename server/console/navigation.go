package console

// entry is a link of the navigation, or the heading of those below it.
type entry struct {
	Text, URL string
	Heading   bool
}

// navigation lists what a person may see.
func navigation(v *visit) []entry {
	to := func(text, path string) entry { return entry{Text: text, URL: base + path} }
	list := []entry{to("Overview", ""), to("Agents", "agents"), to("Files", "files"), to("Archival", "archival"),
		to("Search lab", "search"), to("Policies", "policies"), {Text: "Operate", Heading: true}, to("Jobs", "jobs"),
		to("Events", "events")}
	if v.MayAdmin() {
		list = append(list, to("Keys", "keys"))
	}
	list = append(list, to("Organizations", "organizations"))
	if v.caller.Operator {
		list = append(list, to("Settings", "settings"))
	}
	return list
}
