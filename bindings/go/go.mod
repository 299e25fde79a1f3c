module forebay

go 1.24
