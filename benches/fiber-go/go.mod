module millstream-fiber-peer

go 1.22
