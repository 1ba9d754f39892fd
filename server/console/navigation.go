package console

// entry is a link in the navigation, or a heading above links.
type entry struct {
	Text, URL string
	Heading   bool
}

// navigation lists the pages that a person may see.
func navigation(v *visit) []entry {
	linkTo := func(text, path string) entry { return entry{Text: text, URL: base + path} }
	list := []entry{linkTo("Overview", ""), linkTo("Agents", "agents"), linkTo("Files", "files"),
		linkTo("Archival", "archival"),
		linkTo("Search lab", "search"), linkTo("Policies", "policies"), {Text: "Operate", Heading: true},
		linkTo("Jobs", "jobs"),
		linkTo("Events", "events")}
	if v.MayAdmin() {
		list = append(list, linkTo("Keys", "keys"))
	}
	list = append(list, linkTo("Organizations", "organizations"))
	if v.caller.Operator {
		list = append(list, linkTo("Settings", "settings"))
	}
	return list
}
