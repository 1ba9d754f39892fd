package console

import "strconv"

// chunkList holds the first chunks of a file.
type chunkList struct {
	Chunks []chunk
	Of     int // how many chunks the file has
}

// chunks reads the chunks of a file.
func (v *visit) chunks(f file) (chunkList, error) {
	out := chunkList{Of: f.Chunks}
	err := v.get("/v1/folders/"+v.id("folder")+"/passages?order=asc&limit="+strconv.Itoa(pageSize)+"&file_id="+f.ID,
		&out.Chunks)
	return out, err
}
