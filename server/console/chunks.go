package console

import "strconv"

// chunkList holds the first chunks of a file.
type chunkList struct {
	Chunks []chunk
	Of     int // how many chunks the file has
}

// Count says how many chunks are shown, and how many there are.
func (l chunkList) Count() string {
	if l.Of > len(l.Chunks) {
		return "the first " + strconv.Itoa(len(l.Chunks)) + " of " + number(l.Of)
	}
	return number(l.Of)
}

// Line is the address of the chunk's first line on the file's page.
func (c chunk) Line() string {
	line := strconv.Itoa(c.Place.FirstLine)
	return "?line=" + line + "#line-" + line
}

// chunks reads the chunks of a file.
func (v *visit) chunks(f file) (chunkList, error) {
	out := chunkList{Of: f.Chunks}
	err := v.get("/v1/folders/"+v.id("folder")+"/passages?order=asc&limit="+strconv.Itoa(pageSize)+"&file_id="+f.ID,
		&out.Chunks)
	return out, err
}
